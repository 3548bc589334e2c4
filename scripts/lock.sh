#!/bin/sh
# Resolves requirements/*.in into the lock files, pinned and hashed, with no index address in them.
# Pass --upgrade to move to newer versions; without it the versions already locked stay.
set -eu
cd "$(dirname "$0")/.."
tools=${TMPDIR:-/tmp}/gateway-lock-tools
[ -x "$tools/bin/uv" ] || { python3 -m venv "$tools" && "$tools/bin/pip" -q install uv; }
compile() {
    "$tools/bin/uv" pip compile -q --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-annotate --no-header --no-config "$@"
}
compile requirements/runtime.in -o requirements.lock "$@"
compile requirements/aws.in -c requirements.lock -o requirements-aws.lock "$@"
compile requirements/runtime.in requirements/demo.in -c requirements.lock -o requirements-demo.lock "$@"
compile tests/vendors/requirements.in -o tests/vendors/requirements.lock "$@"
compile tests/vendors/collector.in -o tests/vendors/collector.lock "$@"
compile tests/vendors/openbao.in -o tests/vendors/openbao.lock "$@"
compile --no-deps tests/cluster/programs.in -o tests/cluster/programs.lock "$@"
compile tests/homes/programs.in -o tests/homes/programs.lock "$@"
compile bench/nats_server.in -o bench/nats_server.lock "$@"
compile requirements/dev.in -c requirements-demo.lock -o requirements-dev.lock "$@"
for name in python_sdk_1 fastmcp openapi_python_client; do
    compile "tests/clients/$name.in" -o "tests/clients/$name.lock" "$@"
done
