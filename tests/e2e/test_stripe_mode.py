"""BILLING_MODE=stripe beside the other modes: its own tests, and turning it on and off on one database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, deployment
from tests.vendors.processes import ROOT

pytest_plugins = ("tests.e2e.fixtures",)
# Django reads the settings once in a process, and the other tests run without the mode.
IN_THE_MODE = ("tests/stripe_mode", "tests/contracts/test_admin_registry.py")
# The second run has a database and a store of its own.
OF_THIS_RUN = ("GATEWAY_TEST_RUN", "GATEWAY_TEST_VAR", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS")
MODE = {
    "BILLING_MODE": "stripe",
    "STRIPE_SECRET_KEY": "sk_test_1",
    "STRIPE_WEBHOOK_SECRET": "whsec_1",
    "STRIPE_API_BASE": "http://127.0.0.1:9",
    "STRIPE_PRICE_ID": "price_1",
}


@pytest.fixture
def made(template: Template, tmp_path: Path) -> Iterator[Deployment]:
    with deployment(template, tmp_path / "var") as found:
        yield found


def copies_of(made: Deployment) -> set[str]:
    """The tables of the provider's library."""
    return {table for table in made.database.tables() if table.startswith("djstripe_")}


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


def test_the_mode_is_turned_on_and_off_again_on_one_database(made: Deployment) -> None:
    before = set(made.database.tables())
    made.manage("migrate", "--no-input", **MODE)
    tables = copies_of(made)
    assert {"djstripe_customer", "djstripe_subscription", "djstripe_event"} <= tables
    assert set(made.database.tables()) == before | tables
    # Off: the tables stay and are in nobody's way.
    made.manage("migrate", "--check")
    with made.operator() as operator:
        operator.run("create_organization", name="Acme")
    # On again: nothing to do. Off for good: the copies go.
    made.manage("migrate", "--check", **MODE)
    made.manage("migrate", "djstripe", "zero", **MODE)
    assert set(made.database.tables()) == before
