"""Tests that share a server run in one process, all others file by file, and the longest begin first."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest

from tests.e2e import scheduling
from tests.e2e.scheduling import LONGEST_FIRST, SHARED_SERVERS, SharedServerScheduling, longest, server_of
from tests.vendors.processes import ROOT

LONG, OTHER = "tests/faults/test_followed_stream.py", "tests/unit/test_logs.py"


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


def test_what_is_named_as_long_is_there() -> None:
    assert [name for name in LONGEST_FIRST if name not in SHARED_SERVERS and server_of(name) != name] == []
    assert all((ROOT / name).exists() for name in LONGEST_FIRST if name not in SHARED_SERVERS)


@pytest.mark.parametrize(
    ("scopes", "first"),
    [
        ([OTHER, LONG, "gateway"], "gateway"),
        ([OTHER, LONG], LONG),
        ([OTHER, "tests/unit/test_scheduling.py"], OTHER),
    ],
)
def test_the_longest_is_taken_first(scopes: list[str], first: str) -> None:
    assert longest(scopes) == first


class Process:
    """A process of a parallel run, with the numbers of the tests that it was sent."""

    def __init__(self, name: str) -> None:
        self.gateway, self.shutting_down, self.sent = SimpleNamespace(id=name), False, list[int]()

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.sent += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def distribute(nodes: list[Process], tests: list[str]) -> SharedServerScheduling:
    """A run of these tests that has just begun in these processes."""
    config: Any = SimpleNamespace(
        getvalue=lambda name: ["popen"] * len(nodes), option=SimpleNamespace(loadscopereorder=True)
    )
    run = SharedServerScheduling(config)
    for node in nodes:
        run.add_node(node)  # type: ignore[arg-type]
        run.add_node_collection(node, tests)  # type: ignore[arg-type]
    run.schedule()
    return run


def test_a_file_of_few_long_tests_begins_before_one_of_many_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "server_of", lambda path: path)
    tests = [*(f"{OTHER}::test_{number}" for number in range(5)), f"{LONG}::test_a", f"{LONG}::test_b"]
    first, second = Process("one"), Process("two")
    distribute([first, second], tests)
    assert (first.sent, second.sent) == ([5, 6], [0, 1, 2, 3, 4])


def test_a_process_takes_a_file_when_one_test_is_left_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "server_of", lambda path: path)
    tests = [f"{name}::test_{number}" for name in ("a.py", "b.py") for number in range(3)]
    node = Process("one")
    run = distribute([node], tests)
    assert node.sent == [0, 1, 2]
    run.mark_test_complete(node, 0)  # type: ignore[arg-type]
    assert node.sent == [0, 1, 2]
    run.mark_test_complete(node, 1)  # type: ignore[arg-type]
    assert node.sent == [0, 1, 2, 3, 4, 5]
    assert not node.shutting_down
    for number in (2, 3, 4, 5):
        run.mark_test_complete(node, number)  # type: ignore[arg-type]
    assert node.shutting_down
    assert not run.has_pending


def test_a_file_of_one_test_is_not_begun_before_more_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process begins its last test when it knows the next or that there is none: without either it would wait."""
    monkeypatch.setattr(scheduling, "server_of", lambda path: path)
    node = Process("one")
    run = distribute([node], ["a.py::test_0", "b.py::test_0", "c.py::test_0"])
    assert node.sent == [0, 1]
    run.mark_test_complete(node, 0)  # type: ignore[arg-type]
    assert node.sent == [0, 1, 2]
    run.mark_test_complete(node, 1)  # type: ignore[arg-type]
    assert node.shutting_down
    assert run.workqueue == OrderedDict()
