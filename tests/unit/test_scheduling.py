"""Tests that share a server run in one process, all others file by file."""

from __future__ import annotations

import pytest

from tests.e2e.scheduling import server_of


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("test_real_clients", "sign_in_gateway"),
        ("test_refused_at_once", "sign_in_gateway"),
        ("test_real_vendors", "gateway"),
        ("test_two_processes", "gateway"),
    ],
)
def test_files_that_share_a_server_are_one(name: str, server: str) -> None:
    assert server_of(f"tests/e2e/{name}.py") == server


@pytest.mark.parametrize(
    "path",
    [
        "tests/e2e/test_make_run.py",
        "tests/e2e/test_crowds.py",
        "tests/faults/test_database_silent.py",
        "tests/unit/test_logs.py",
    ],
)
def test_a_file_with_servers_of_its_own_is_by_itself(path: str) -> None:
    assert server_of(path) == path
