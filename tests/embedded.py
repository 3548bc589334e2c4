"""Tests that run on SQLite and the in-process store too, where the suite has PostgreSQL and Redis as well.

The embedded back ends answer the same calls through other code: `gateway/coordination/sqlite_store.py`, the SQLite
audit connection, and the database's own locks. A test belongs here when it goes through one of those in a way that the
back end can change: it counts, it commits from several threads, it reads the request log, or it starts the product.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
# Folders and files, relative to `tests`.
PLACES = (
    "api/audit",
    "api/billing",
    "api/catalog",
    "api/limits",
    "api/oauth_ext/test_code_grant.py",
    "api/oauth_ext/test_race_rounds.py",
    "api/proxy/test_cli_call.py",
    "api/proxy/test_effects_at_once.py",
    "api/proxy/test_mcp_call.py",
    "api/proxy/test_warm_call.py",
    "api/web",
    "contracts/test_coordination_store.py",
    "contracts/test_migrations.py",
    "contracts/test_routes.py",
    "contracts/test_squashed_migrations.py",
    "e2e/test_billing_life.py",
    "e2e/test_crowds.py",
    "e2e/test_refused_at_once.py",
    "e2e/test_secret_hygiene.py",
    "e2e/test_two_processes.py",
    "faults",
)
# Tests under api/proxy commit, because calls run on an event loop of their own: PLACES names those that belong here.
COMMITTING = "transactional_db"
COMMITS_ANYWAY = TESTS / "api" / "proxy"
ONCE = TESTS / "unit"
# Fault tests take databases of their own, named by a parameter. The run on production's pair has no need of a file.
FAULTS = TESTS / "faults"
FILE = "sqlite"


def mark(items: list[pytest.Item]) -> None:
    """Give tests the marks that scripts/test.py chooses by."""
    places = [TESTS / place for place in PLACES]
    for item in items:
        if item.path.is_relative_to(ONCE) or _breaks_a_file(item):
            item.add_marker(pytest.mark.one_back_end)
        elif any(item.path.is_relative_to(place) for place in places) or _commits(item):
            item.add_marker(pytest.mark.embedded)


def _breaks_a_file(item: pytest.Item) -> bool:
    """Whether the database of a fault test is a SQLite file, whatever the back ends of the run are."""
    parameters = getattr(item, "callspec", None)
    return item.path.is_relative_to(FAULTS) and parameters is not None and FILE in parameters.params.values()


def _commits(item: pytest.Item) -> bool:
    return COMMITTING in getattr(item, "fixturenames", ()) and not item.path.is_relative_to(COMMITS_ANYWAY)
