"""Fixtures of the whole suite: two organizations with their people, and which back ends this run uses."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase
from hypothesis import HealthCheck
from hypothesis.database import DirectoryBasedExampleDatabase

from gateway.lib import clock
from gateway.lib.reserved_connections import close_reserved_connections
from oauth_ext.jwt import keys
from tests import embedded, long_ones
from tests.e2e.scheduling import SharedServerScheduling
from tests.emptying import empty_databases
from tests.factories.cast import Cast, make_cast
from tests.patience import widen_deadlines

_IDENTIFIER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def pytest_configure() -> None:
    """Widen time limits that a loaded machine would break, and fix the seeds of property tests.

    `--hypothesis-profile=search` (`make properties`) draws at random instead, and keeps each failure it finds.
    """
    patient = hypothesis.settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    # The same examples in every run: a change is what makes a test fail, and never the draw.
    hypothesis.settings.register_profile("suite", patient, max_examples=40, derandomize=True, database=None)
    failures = DirectoryBasedExampleDatabase(Path(__file__).resolve().parent.parent / ".hypothesis" / "examples")
    hypothesis.settings.register_profile(
        "search", patient, max_examples=1_000, derandomize=False, database=failures, print_blob=True
    )
    hypothesis.settings.load_profile("suite")
    widen_deadlines()


def pytest_report_header() -> str:
    """Say which database and store this run uses."""
    return f"gateway back ends: {settings.TEST_BACKENDS}"


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Tests have the same names in every process, also where a case holds an identifier made a moment ago."""
    if isinstance(val, str) and _IDENTIFIER.search(val):
        return _IDENTIFIER.sub("some-id", val)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs on which back ends, and what takes long."""
    embedded.mark(items)
    long_ones.mark(items)


def pytest_collectstart() -> None:
    """Nothing that collecting makes is garbage, and to look for it takes a fifth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """To go through all test modules again and again for garbage took an eighth of a run: they are left out of it.

    Objects that tests leave behind are looked through while they are young, and rarely after that.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 200)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedServerScheduling | None:
    """`--dist loadfile` is ours; every other way to distribute tests is as it was."""
    return SharedServerScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _fresh_signing_keys() -> Iterator[None]:
    """Signing keys are kept by the process for a while, and rows of one test are gone in the next."""
    keys.forget()
    yield
    keys.forget()


@pytest.fixture(scope="session", autouse=True)
def _quick_emptying() -> Iterator[None]:
    """Tests that commit clean up by DELETE. Transactions of other tests are rolled back, which costs nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_databases)
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The test database, which nobody holds on to at the end: a thread of a server may keep its session a moment."""
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock():
            _commit_without_waiting_for_the_disk()
    yield
    if connection.vendor == "postgresql":
        connection.close()
        connection.close_pool()
        close_reserved_connections()
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


def _commit_without_waiting_for_the_disk() -> None:
    # No test of this process cuts the power. tests/faults keep the server's own setting.
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        # Positions that tests choose themselves lie below those of transactions, on a new server too.
        cursor.execute("UPDATE audit_streamera SET start = start + 1000000000000")
    connection.close()
    connection.close_pool()  # the setting is for sessions that begin after it


@pytest.fixture
def cast(db: None) -> Cast:
    """Two organizations and their people, inside a transaction that is rolled back."""
    return make_cast()


@pytest.fixture
def committed_cast(transactional_db: None) -> Cast:
    """The same, committed: for code that reads from other threads or connections."""
    return make_cast()


@pytest.fixture
def stopped_clock() -> Iterator[None]:
    """Time stands still: a test that comes within seconds of a limit meets it exactly, however slow the machine is."""
    with time_machine.travel(clock.now(), tick=False):
        yield
