"""Callers in turn: who calls which vendor, and the file that the load generator reads."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import pytest

from bench.turns import Template, Turn, TurnBook, callers_in_turn, read_book, turns_of, warm_up_turns, write_book


def test_each_pass_has_every_caller_once_and_neighbours_of_different_organizations() -> None:
    calls = callers_in_turn(organizations=4, callers=3, vendors=2)
    assert len(calls) == 4 * 3 * 2
    for start in (0, 12):
        assert sorted(caller for caller, _ in calls[start : start + 12]) == list(range(12))
    organizations = [caller // 3 for caller, _ in calls]
    assert all(one != other for one, other in pairwise(organizations))


def test_every_caller_calls_every_vendor_once_a_cycle() -> None:
    assert len(set(callers_in_turn(5, 4, 3))) == 5 * 4 * 3


@pytest.mark.parametrize(("callers", "vendors"), [(5, 1), (5, 3), (3, 3), (1, 3)])
def test_the_warm_up_reaches_every_caller_and_every_vendor_of_every_organization(callers: int, vendors: int) -> None:
    calls = callers_in_turn(6, callers, vendors)[: warm_up_turns(6, callers, vendors)]
    assert {caller for caller, _ in calls} == set(range(6 * callers))
    assert {(caller // callers, vendor) for caller, vendor in calls} == {
        (organization, vendor) for organization in range(6) for vendor in range(vendors)
    }


def test_turns_expect_other_marks_than_their_neighbours() -> None:
    turns = turns_of([(0, 0), (1, 1), (2, 0)], marks=2)
    assert turns == [Turn(0, 0), Turn(1, 3), Turn(2, 0)]


@pytest.fixture
def book() -> TurnBook:
    templates = [Template(b"<", b">", b"one"), Template(b"[", b"]", b"two")]
    return TurnBook([b"a", b"b"], templates, [Turn(0, 0), Turn(1, 0), Turn(0, 1)])


def test_requests_go_on_from_any_turn_round_and_round(book: TurnBook) -> None:
    assert list(book.requests(first=4, count=3)) == [(b"<b>", b"one"), (b"[a]", b"two"), (b"<a>", b"one")]
    endless = [request for request, _ in islice(book.requests(first=0, count=0), 7)]
    assert endless == [b"<a>", b"<b>", b"[a]", b"<a>", b"<b>", b"[a]", b"<a>"]


def test_the_file_holds_the_book(book: TurnBook, tmp_path: Path) -> None:
    write_book(book, tmp_path / "book")
    assert read_book(tmp_path / "book") == book


def test_a_book_says_nothing_of_its_bearers(book: TurnBook) -> None:
    assert repr(book) == "TurnBook(2 bearers, 3 turns)"
