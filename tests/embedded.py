"""Tests that run on SQLite and the in-process store too, where the suite has PostgreSQL and Redis as well.

The embedded back ends answer the same calls through other code: `gateway/coordination/sqlite_store.py`, the SQLite
audit connection, and the database's own locks. A test belongs here when it goes through one of those in a way that the
back end can change: it counts, it commits from several threads, it reads the request log, or it starts the product.
With TEST_LONG=1 every other test that commits runs on them as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.long_ones import WITH_LONG

TESTS = Path(__file__).resolve().parent
# Folders and files, relative to `tests`.
PLACES = (
    "api/audit/shipping/test_delivery.py",
    "api/audit/test_audit_connection.py",
    "api/audit/test_log_api.py",
    "api/audit/test_log_csv.py",
    "api/audit/test_log_indexes.py",
    "api/audit/test_log_plans.py",
    "api/audit/test_log_stream.py",
    "api/audit/test_partitions.py",
    "api/audit/test_rejected_uses.py",
    "api/audit/test_retention.py",
    "api/audit/test_seals.py",
    "api/audit/test_selectors.py",
    "api/audit/test_stream.py",
    "api/audit/usage",
    "api/billing/test_webhook_at_once.py",
    "api/catalog",
    "api/limits",
    "api/oauth_ext/test_code_grant.py",
    "api/proxy/test_cli_call.py",
    "api/proxy/test_effects_at_once.py",
    "api/proxy/test_mcp_call.py",
    "api/proxy/test_warm_call.py",
    "api/web",
    "contracts/test_coordination_store.py",
    "contracts/test_migrations.py",
    "e2e/test_refused_at_once.py",
    "faults/test_audit_engines.py",
    "faults/test_followed_stream.py",
    "faults/test_gateway_durability.py",
    "faults/test_shipping_killed.py",
)
# With TEST_LONG=1 only. Of their kind, tests of PLACES are quicker.
LONG_PLACES = (
    "api/oauth_ext/test_race_rounds.py",
    "e2e/test_crowds.py",
    "e2e/test_two_processes.py",
    "faults/test_rate_limited_calls.py",
)
# Tests under api/proxy commit, because calls run on an event loop of their own: PLACES names those that belong here.
# The attacks commit too, and `make attacks` runs them on these back ends.
COMMITTING = "transactional_db"
COMMITS_ANYWAY = (TESTS / "api" / "proxy", TESTS / "attacks")
ONCE = TESTS / "unit"
# Fault tests take databases of their own, named by a parameter. The run on production's pair has no need of a file.
FAULTS = TESTS / "faults"
FILE = "sqlite"


def mark(items: list[pytest.Item]) -> None:
    """Give tests the marks that scripts/test.py chooses by."""
    for item in items:
        folder = _folder(item.path)
        if folder.is_pure or (folder.has_faults and _breaks_a_file(item)):
            item.add_marker(pytest.mark.one_back_end)
        elif folder.is_embedded or (WITH_LONG and not folder.commits_anyway and _commits(item)):
            item.add_marker(pytest.mark.embedded)


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where a file of tests lies."""

    is_pure: bool
    has_faults: bool
    is_embedded: bool
    commits_anyway: bool


@cache
def _folder(path: Path) -> _Folder:
    return _Folder(
        is_pure=path.is_relative_to(ONCE),
        has_faults=path.is_relative_to(FAULTS),
        is_embedded=any(path.is_relative_to(TESTS / place) for place in PLACES + WITH_LONG * LONG_PLACES),
        commits_anyway=any(path.is_relative_to(folder) for folder in COMMITS_ANYWAY),
    )


def _breaks_a_file(item: pytest.Item) -> bool:
    """Whether the database of a fault test is a SQLite file, whatever the back ends of the run are."""
    parameters = getattr(item, "callspec", None)
    return parameters is not None and FILE in parameters.params.values()


def _commits(item: pytest.Item) -> bool:
    return COMMITTING in getattr(item, "fixturenames", ())
