"""The tests of BILLING_MODE=stripe, in a process of the mode. Their rows are rolled back: either back end will do."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.vendors.processes import ROOT

# Django reads the settings once in a process, and the other tests run without the mode.
IN_THE_MODE = ("tests/stripe_mode", "tests/contracts/test_admin_registry.py")
# The second run has a database and a store of its own.
OF_THIS_RUN = ("GATEWAY_TEST_RUN", "GATEWAY_TEST_VAR", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS")


def test_the_tests_of_the_mode_pass() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in OF_THIS_RUN}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--ds=tests.stripe_settings", *IN_THE_MODE],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
