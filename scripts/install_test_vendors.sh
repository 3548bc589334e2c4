#!/bin/sh
# Installs the third-party programs of the tests, exactly as locked. Vendor servers: the Python one into .venv-vendors
# (it needs another mcp than the demo vendor), the Node one into tests/vendors/node_modules. Clients that sign in: Python
# ones into .venv-clients (each needs an mcp of its own), Node ones into tests/clients/node_modules. Does nothing when
# they are there. The stamps are written last, so that an interrupted run starts over. Prints one line on success.
set -eu
cd "$(dirname "$0")/.."
log=${TMPDIR:-/tmp}/install-test-vendors.$$.log
trap 'rm -f "$log"' EXIT

python=${VENV:-.venv}/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}

sha256='import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
fingerprint() { { "$1" --version; cat "$2"; } | "$python" -c "$sha256"; } # of what reads a lock file, and of the file
is_stamped() { [ -f "$1/.stamp" ] && [ "$(cat "$1/.stamp")" = "$2" ]; }
run_logged() {
    "$@" >"$log" 2>&1 && return
    cat "$log" >&2
    echo "Could not install the third-party programs of the tests: $1 failed (see above)." >&2
    exit 1
}

report=
say() { report="${report:+$report, }$1"; }

install_python() { # NAME VENV LOCK
    wanted=$(fingerprint "$python" "$3")
    if is_stamped "$2" "$wanted" && "$2/bin/python" -c '' 2>/dev/null; then
        say "$1 present"
        return
    fi
    rm -rf "$2"
    run_logged "$python" -m venv "$2"
    # The folder hides itself from version control, and so from every tool that reads its ignore files.
    echo '*' >"$2/.gitignore"
    run_logged "$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --no-deps --require-hashes -r "$3"
    echo "$wanted" >"$2/.stamp"
    say "$1 installed"
}

install_node() { # NAME FOLDER
    wanted=$(fingerprint node "$2/package-lock.json")
    if is_stamped "$2/node_modules" "$wanted"; then
        say "$1 present"
        return
    fi
    rm -rf "$2/node_modules"
    run_logged npm --prefix "$2" ci --ignore-scripts --no-audit --no-fund
    echo "$wanted" >"$2/node_modules/.stamp"
    say "$1 installed"
}

install_python time .venv-vendors tests/vendors/requirements.lock
install_python "Python SDK 1" .venv-clients/python_sdk_1 tests/clients/python_sdk_1.lock
install_python FastMCP .venv-clients/fastmcp tests/clients/fastmcp.lock
if { command -v node && command -v npm; } >/dev/null 2>&1; then
    install_node everything tests/vendors
    install_node "Node clients" tests/clients
else
    say "everything and Node clients left out, as there is no Node.js with npm"
fi
echo "Third-party programs of the tests: $report."
