"""A copy of the repository with pure modules of the call path compiled by mypyc.   docs/decisions/0055

    python -m bench.compiled /tmp/compiled
    python -m bench.pure_parts; cd /tmp/compiled; python -m bench.pure_parts
    python -m bench.variants base compiled:code=/tmp/compiled

Needs a C compiler, and setuptools beside mypy.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Not those with msgspec's classes, such as `jsonrpc`, `replies` and `call_record`: mypyc drops the options and
# annotations that msgspec reads, and modules fail.
MODULES = (
    "gateway/lib/strict_json.py",
    "proxy/protocol/secret_mask.py",
    "proxy/timing.py",
)
LEFT_OUT = shutil.ignore_patterns(".*", "node_modules", "__pycache__", "tests", "var", "staticfiles")
SETUP = """
from mypyc.build import mypycify
from setuptools import setup

options = ["--config-file", "", "--follow-imports", "skip", "--ignore-missing-imports"]
modules = mypycify([*options, *{modules!r}], opt_level="2", debug_level="0")
setup(name="compiled", packages=[], py_modules=[], ext_modules=modules)
"""


def compile_into(folder: Path) -> list[Path]:
    """The compiled modules. Raises: FileExistsError; subprocess.CalledProcessError."""
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
    (folder / "setup_compiled.py").write_text(SETUP.format(modules=MODULES), encoding="utf-8")
    command = (sys.executable, "setup_compiled.py", "build_ext", "--inplace")
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return sorted(each for name in MODULES for each in (folder / name).parent.glob(f"{Path(name).stem}.*.so"))


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("One argument: a folder that does not exist yet.\n")
        return 2
    for module in compile_into(Path(arguments[0]).resolve()):
        print(module.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
