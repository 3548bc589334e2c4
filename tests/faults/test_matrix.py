"""The fault matrix in short: the checker of histories, and some rows on real servers. `make faults` plays all."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fakes.postgresql_server import binaries
from tests.fakes.redis_server import is_installed
from tests.faults import matrix
from tests.faults.history import Ending, History, LoggedCall
from tests.faults.matrix_table import ROWS

SHORT = (
    "vendor dies, 5xx, 429",
    "vendor forgets its sessions",
    "Redis killed",
    "Redis cut off",
    "PostgreSQL restarted",
    "gateway killed under load",
    "identity provider down",
)


def history_of(**endings: Ending) -> History:
    made = History()
    for request_id, ending in endings.items():
        made.asks(request_id)
        if ending is not Ending.NO_ANSWER:
            made.answers(request_id, ending)
    return made


def logged(request_id: str, status: str = "success") -> LoggedCall:
    return LoggedCall(request_id, status, "")


def test_a_history_whose_answers_all_have_their_row() -> None:
    history = history_of(
        a=Ending.SUCCESS, b=Ending.VENDOR_ERROR, c=Ending.DENIED, d=Ending.UNAVAILABLE, e=Ending.NO_ANSWER
    )
    rows = [logged("a"), logged("b", "error"), logged("c", "denied"), logged("e", "unknown")]
    verdict = history.compare(rows)
    assert verdict.problems == ()
    assert str(verdict) == "5 asked, 4 answered, 4 rows"
    assert history.compare([*rows, logged("d", "error")]).problems == (), "a refused call may have its row"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "a was answered success, and its row says nothing"),
        ([logged("a", "unknown")], "a was answered success, and its row says unknown"),
        ([logged("a"), logged("a")], "a has 2 rows"),
        ([logged("a"), logged("z")], "z has a row, and nobody asked"),
    ],
)
def test_each_fault_of_a_log_is_found(rows: list[LoggedCall], problem: str) -> None:
    assert history_of(a=Ending.SUCCESS).compare(rows).problems == (problem,)


def test_an_id_is_asked_with_once() -> None:
    with pytest.raises(AssertionError, match="once"):
        history_of(a=Ending.SUCCESS).asks("a")


def test_some_rows_on_real_servers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if binaries() is None or not is_installed():
        pytest.skip("needs PostgreSQL's programs and redis-server")
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    monkeypatch.delenv("DATABASE_URL", raising=False)
    rows = [row for row in ROWS if row.name in SHORT]
    assert len(rows) == len(SHORT)
    counts = Counter[str]()
    failed = matrix.run_round(rows, counts)
    assert failed == [], capsys.readouterr().out
    assert counts["answered"] > 100
