#!/bin/sh
# Leaves in the virtual environment $1 and the application $2 what a running service reads. Runs while an image is built.
set -eu
venv=$1 app=$2
# Sources of static files: the service reads the collected ones. Sources of translations and of compiled modules, types
# and tests: nothing reads them.
# celery.utils.static is a module.
find "$venv/lib" "$app/gateway" -type d -name static ! -exec test -e {}/__init__.py \; -prune -exec rm -r {} +
find "$venv/lib" -type d -name tests -prune -exec rm -r {} +
# Words and formats of languages that no page has: LANGUAGES of the settings.
find "$venv/lib" -mindepth 2 -type d -path '*/locale/*' -not -path '*/locale/*/*' -not -name __pycache__ \
    -not -name en -not -name de -prune -exec rm -r {} +
find "$venv/lib" "$app" -type f \( -name '*.pyi' -o -name '*.po' -o -name '*.pot' -o -name '*.pyx' -o -name '*.pxd' \
    -o -name '*.c' -o -name '*.h' \) -delete
rm -r "$app/scripts"
# The packages' order of compilation is fixed, so that two builds make the same bytes.
PYTHONHASHSEED=0 "$venv/bin/python" -B -m compileall -q -j 1 --invalidation-mode unchecked-hash "$venv/lib" "$app"
