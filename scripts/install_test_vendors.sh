#!/bin/sh
# Installs the third-party programs of the tests, exactly as locked. Vendor servers: the Python one into .venv-vendors
# (it needs another mcp than the demo vendor), those of Node.js, with an authorization server, into
# tests/vendors/node_modules. An OpenTelemetry collector into .venv-collector, OpenBao into .venv-openbao, and what the
# Helm chart is tested with into .venv-cluster, where there is a build of them. Clients that sign in: Python ones into
# .venv-clients (each needs an mcp of its own), Node ones into tests/clients/node_modules. Does nothing when they are
# there. A stamp goes before anything is removed and comes back last, so that an interrupted run starts over; two runs at
# once take turns. Prints one line on success.
set -eu
cd "$(dirname "$0")/.."
log=${TMPDIR:-/tmp}/install-test-vendors.$$.log
trap 'rm -f "$log"' EXIT

python=${VENV:-.venv}/bin/python
[ -x "$python" ] || python=${PYTHON:-python3}

sha256='import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
fingerprint() { { "$1" --version; cat "$2"; } | "$python" -c "$sha256"; } # of what reads a lock file, and of the file
is_stamped() { [ -f "$1/.stamp" ] && [ "$(cat "$1/.stamp")" = "$2" ]; }
stamp() { # FOLDER FINGERPRINT; at once or not at all
    echo "$2" >"$1/.stamp.new"
    mv "$1/.stamp.new" "$1/.stamp"
}
clear() { # FOLDER; removed half way, it has no stamp any more
    rm -f "$1/.stamp"
    rm -rf "$1"
}
run_logged() {
    "$@" >"$log" 2>&1 && return
    cat "$log" >&2
    echo "Could not install the third-party programs of the tests: $1 failed (see above)." >&2
    exit 1
}

# The lock is a folder that is always there. Programs that are started here hold it too: as long as one of them is left
# of a run that was killed, the next run waits. By Python, since not every system has flock(1).
exec 9<tests/clients
take_turns='
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Another run is installing the third-party programs of the tests; waiting for it...", file=sys.stderr)
    fcntl.flock(9, fcntl.LOCK_EX)
'
"$python" -c "$take_turns" 9<&9

report=
say() { report="${report:+$report, }$1"; }

install_python() { # NAME VENV LOCK
    wanted=$(fingerprint "$python" "$3")
    if is_stamped "$2" "$wanted" && "$2/bin/python" -c '' 2>/dev/null; then
        say "$1 present"
        return
    fi
    clear "$2"
    # The pip at hand installs into it. One of its own, and files compiled that nothing imports, took half of the time.
    run_logged "$python" -m venv --without-pip "$2"
    # The folder hides itself from version control, and so from every tool that reads its ignore files.
    echo '*' >"$2/.gitignore"
    run_logged "$python" -m pip --python "$2/bin/python" install --quiet --disable-pip-version-check --no-input \
        --no-compile --no-deps --require-hashes -r "$3"
    stamp "$2" "$wanted"
    say "$1 installed"
}

install_node() { # NAME FOLDER
    wanted=$(fingerprint node "$2/package-lock.json")
    if is_stamped "$2/node_modules" "$wanted"; then
        say "$1 present"
        return
    fi
    clear "$2/node_modules"
    run_logged npm --prefix "$2" ci --ignore-scripts --no-audit --no-fund
    stamp "$2/node_modules" "$wanted"
    say "$1 installed"
}

install_python time .venv-vendors tests/vendors/requirements.lock
has_build='import platform, sys; sys.exit((platform.system(), platform.machine(), sys.version_info < (3, 14)) != ("Linux", "x86_64", True))'
if "$python" -c "$has_build"; then
    install_python collector .venv-collector tests/vendors/collector.lock
    install_python OpenBao .venv-openbao tests/vendors/openbao.lock
    install_python "Helm" .venv-cluster tests/cluster/programs.lock
else
    say "collector, OpenBao and Helm left out, as there is no build of them for this computer"
fi
install_python "Python SDK 1" .venv-clients/python_sdk_1 tests/clients/python_sdk_1.lock
install_python FastMCP .venv-clients/fastmcp tests/clients/fastmcp.lock
install_python openapi-python-client .venv-clients/openapi_python_client tests/clients/openapi_python_client.lock
if { command -v node && command -v npm; } >/dev/null 2>&1; then
    install_node everything tests/vendors
    install_node "Node clients" tests/clients
else
    say "everything and Node clients left out, as there is no Node.js with npm"
fi
echo "Third-party programs of the tests: $report."
