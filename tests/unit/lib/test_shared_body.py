"""A shared body counts where it is kept, and else once in the budget of answers, as long as a response sends it."""

from __future__ import annotations

import pytest

from gateway.lib import body_budgets
from gateway.lib.shared_body import SharedBody

CONTENT = b"x" * 100_000


def held() -> tuple[int, int]:
    """Bytes of the budget that its owner and another organization hold."""
    budget = body_budgets.vendors()
    return budget.held_by("acme"), budget.held_by("globex")


async def test_a_kept_body_is_not_counted_again() -> None:
    body = SharedBody(CONTENT, owner="acme", is_kept=True)
    body.hold()
    assert held() == (0, 0)
    body.release()
    assert (bytes(body), len(body)) == (CONTENT, len(CONTENT))
    assert bytes(body) is CONTENT


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_body_outside_the_cache_counts_once_for_all_that_send_it(is_kept: bool) -> None:
    body = SharedBody(CONTENT, owner="acme", is_kept=is_kept)
    other = SharedBody(CONTENT, owner="globex", is_kept=False)
    body.hold()
    body.drop()
    body.hold()
    assert held() == (len(CONTENT), 0)
    other.hold()
    assert held() == (len(CONTENT), len(CONTENT))
    body.release()
    assert held() == (len(CONTENT), len(CONTENT)), "one response still sends it"
    body.release()
    other.release()
    assert held() == (0, 0)


async def test_a_body_that_nothing_sends_is_not_counted() -> None:
    body = SharedBody(CONTENT, owner="acme", is_kept=True)
    body.drop()
    assert held() == (0, 0)
    body.hold()
    assert held() == (len(CONTENT), 0)
    body.release()
    assert held() == (0, 0)
