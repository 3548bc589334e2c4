"""The goals of a page: which of them it misses, and which fail a run."""

from __future__ import annotations

import pytest

from bench.page_figures import BYTES_GOAL, QUERY_GOAL, TIME_GOAL_MS, Visit
from bench.pages import summary


def visit(*, ms: float = TIME_GOAL_MS, queries: int = QUERY_GOAL, sent: int = BYTES_GOAL) -> Visit:
    return Visit("a/page", 200, (1.0,) * 18 + (ms,) * 2, 1.0, queries, sent, html=1)


@pytest.mark.parametrize(
    ("page", "beyond", "fails"),
    [
        (visit(), [], False),
        (visit(ms=TIME_GOAL_MS + 1), ["time"], False),
        (visit(queries=QUERY_GOAL + 1), ["queries"], True),
        (visit(sent=BYTES_GOAL + 1), ["bytes"], True),
        (visit(ms=TIME_GOAL_MS + 1, queries=QUERY_GOAL + 1), ["time", "queries"], True),
    ],
)
def test_a_slow_page_is_named_and_only_statements_and_bytes_fail(page: Visit, beyond: list[str], fails: bool) -> None:
    assert (page.beyond, page.fails) == (beyond, fails)


def test_the_pages_beyond_a_goal_are_named() -> None:
    lines = summary([("owner", visit()), ("member", visit(queries=QUERY_GOAL + 1))])
    assert "Beyond a goal: 1 of 2." in lines
    assert lines[-1] == "  queries: /a/page as member"


def test_a_page_that_was_seen_once_has_no_time() -> None:
    assert Visit("a/page", 200, (), 0.0, 1, 1, 1).beyond == []
