"""Rate-limited calls of one subject and minute are one row with an exact count, over all processes. Spec: D80, D146"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from pytest_django import DjangoDbBlocker

from tests.faults.scratch_database import BACKENDS, ROOT, NewScratch, ScratchDatabase

pytest_plugins = ("tests.faults.fixtures",)

MINUTE = 29_000_000


@pytest.fixture(scope="module", params=BACKENDS)
def database(
    request: pytest.FixtureRequest,
    new_scratch: NewScratch,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[ScratchDatabase]:
    """Not the suite's database, so the guard of that one is off."""
    with django_db_blocker.unblock(), new_scratch(request.param, tmp_path_factory.mktemp("refused")) as made:
        yield made


def refuse(database: ScratchDatabase, calls: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.faults.refusing_process", str(calls), str(MINUTE)]
    return subprocess.Popen(command, cwd=ROOT, env=database.environment(), stderr=subprocess.PIPE)


def test_ten_thousand_refused_calls_of_two_processes_are_one_row(database: ScratchDatabase) -> None:
    processes = [refuse(database, 4_000), refuse(database, 6_000)]
    for process in processes:
        _, complaints = process.communicate(timeout=60)
        assert process.returncode == 0, complaints.decode()
    with closing(database.connect()) as connection:
        rows = connection.execute(
            "SELECT user_id, status, error_code, count FROM audit_requestauditentry ORDER BY count"
        ).fetchall()
    assert [tuple(row) for row in rows] == [
        ("user-1", "denied", "rate_limited", 2),  # the same subject in the other organization
        ("user-1", "denied", "rate_limited", 10_000),
    ]
