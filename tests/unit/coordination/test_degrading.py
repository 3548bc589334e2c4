"""While the store is away: limits shrink to this process's share, epochs are unknown, nothing is unlimited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gateway.coordination import remainders
from gateway.coordination.degrading import RETRY_AFTER_S, DegradingStore
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable

RULE = Rule("tools", limit=8, window_s=3600)


class FlakyStore:
    """Answers while `up`, with what is `left` where that is said, and remembers bumps."""

    def __init__(self) -> None:
        self.up = True
        self.asked = 0
        self.bumped: list[str] = []
        self.left: int | None = None
        self.retry_after_s = 0

    def _answer(self) -> None:
        self.asked += 1
        if not self.up:
            raise CoordinationUnavailable("gone")

    def _admission(self, rule: Rule, left: int, epochs: tuple[str, ...] | None) -> Admission:
        left = left if self.left is None else self.left
        return Admission(rule, not self.retry_after_s, left, self.retry_after_s, epochs)

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        self._answer()
        return self._admission(rule, rule.limit - 1, tuple("e" for _ in epochs))

    def hit(self, rule: Rule, key: str) -> Admission:
        self._answer()
        return self._admission(rule, rule.limit - 1, None)

    def peek(self, rule: Rule, key: str) -> Admission:
        self._answer()
        return self._admission(rule, rule.limit, None)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        self._answer()
        return tuple("e" for _ in names)

    def bump_epochs(self, names: Sequence[str]) -> None:
        self._answer()
        self.bumped.extend(names)

    def put_health(self, vendor: str, state: bytes, ttl_s: int) -> None:
        self._answer()

    def health(self, vendors: Sequence[str]) -> Mapping[str, bytes]:
        self._answer()
        return {}

    def ping(self) -> None:
        self._answer()

    async def aclose(self) -> None:
        self.asked = 0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def made(processes: int = 2) -> tuple[DegradingStore, FlakyStore, Clock]:
    inner, clock = FlakyStore(), Clock()
    return DegradingStore(inner, processes=processes, monotonic=clock), inner, clock


async def test_passes_through_while_the_store_answers() -> None:
    store, _, _ = made()
    assert (await store.admit(RULE, "anna", ("a", "b"))).epochs == ("e", "e")
    assert store.hit(RULE, "anna").allowed


async def test_counts_locally_with_this_processes_share_and_unknown_epochs() -> None:
    store, inner, _ = made(processes=2)
    inner.up = False
    answers = [await store.admit(RULE, "anna", ("a",)) for _ in range(6)]
    assert [answer.allowed for answer in answers] == [True] * 4 + [False] * 2
    assert {answer.epochs for answer in answers} == {None}
    assert await store.read_epochs(("a",)) is None


async def test_a_look_passes_through_and_falls_back_to_the_local_count() -> None:
    store, inner, _ = made(processes=2)
    assert store.peek(RULE, "anna").remaining == RULE.limit
    inner.up = False
    for left in (4, 3, 2, 1):
        assert store.peek(RULE, "anna").remaining == left
        store.hit(RULE, "anna")
    refused = store.peek(RULE, "anna")
    assert (refused.allowed, refused.remaining, refused.retry_after_s > 0) == (False, 0, True)
    assert store.peek(RULE, "bo").allowed


async def test_a_dead_store_is_asked_once_and_again_after_a_while() -> None:
    store, inner, clock = made()
    inner.up = False
    for _ in range(5):
        await store.admit(RULE, "anna", ())
    assert inner.asked == 1
    inner.up = True
    clock.now += RETRY_AFTER_S
    assert (await store.admit(RULE, "anna", ("a",))).epochs == ("e",)


async def test_a_bump_that_found_the_store_away_is_sent_when_it_is_back() -> None:
    store, inner, clock = made()
    inner.up = False
    store.bump_epochs(["subject:a"])
    assert inner.bumped == []
    inner.up = True
    clock.now += RETRY_AFTER_S
    await store.admit(RULE, "anna", ())
    assert inner.bumped == ["subject:a"]
    await store.admit(RULE, "anna", ())
    assert inner.bumped == ["subject:a"]


# --- what was left before the store went away ------------------------------------------------------------------------


class Leaving:
    """Goes away and comes back, says what is left, and hears nothing of what is admitted meanwhile."""

    def __init__(self, processes: int = 2) -> None:
        self.store, self.inner, self.clock = made(processes)

    async def says(self, left: int, key: str = "anna", *, retry_after_s: int = 0, rule: Rule = RULE) -> None:
        """The store answers once, and goes away."""
        self.clock.now += RETRY_AFTER_S
        self.inner.up, self.inner.left, self.inner.retry_after_s = True, left, retry_after_s
        answer = await self.store.admit(rule, key, ("a",))
        assert (answer.remaining, answer.epochs) == (left, ("e",))
        self.inner.up = False

    async def admitted(self, key: str = "anna", *, rule: Rule = RULE) -> int:
        """How many of many the process admits by itself; whoever is refused is told when to come back."""
        answers = [await self.store.admit(rule, key, ("a",)) for _ in range(rule.limit)]
        assert all(answer.allowed or answer.retry_after_s > 0 for answer in answers)
        assert {answer.epochs for answer in answers} == {None}
        return sum(answer.allowed for answer in answers)


@pytest.mark.parametrize(("left", "admitted"), [(0, 0), (1, 1), (3, 3), (4, 4), (7, 4)])
async def test_no_more_than_was_left_and_no_more_than_the_share(left: int, admitted: int) -> None:
    leaving = Leaving()
    await leaving.says(left)
    looked = leaving.store.peek(RULE, "anna")
    assert (looked.remaining, looked.rule.limit) == (admitted, 4), "of the process's share"
    assert await leaving.admitted() == admitted
    assert leaving.store.peek(RULE, "anna").allowed is leaving.store.hit(RULE, "anna").allowed is False
    assert await leaving.admitted("bo") == 4, "nobody else's window is touched"
    other = Rule("other", limit=8, window_s=3600)
    assert await leaving.admitted(rule=other) == 4, "nor the same key's under another rule"


async def test_a_used_up_window_opens_for_nobody_who_is_alone_in_the_deployment() -> None:
    leaving = Leaving(processes=1)
    await leaving.says(0)
    assert await leaving.admitted() == 0
    assert await leaving.admitted("bo") == 8


@pytest.mark.parametrize(("said_s", "told_s"), [(90, 90), (2, 5), (0, 5)])
async def test_who_has_nothing_left_is_told_when_the_store_may_say_otherwise(said_s: int, told_s: int) -> None:
    leaving = Leaving()
    await leaving.says(0, retry_after_s=said_s)
    answer = await leaving.store.admit(RULE, "anna", ())
    assert (answer.allowed, answer.remaining, answer.retry_after_s) == (False, 0, told_s)
    leaving.clock.now += 1.5
    looked = leaving.store.peek(RULE, "anna")
    assert (looked.allowed, looked.remaining, looked.retry_after_s) == (False, 0, told_s - 1), "whole seconds, up"
    assert looked.rule.limit == 4


async def test_what_was_admitted_here_counts_when_the_store_goes_away_again() -> None:
    leaving = Leaving()
    await leaving.says(3)
    assert await leaving.admitted() == 3
    await leaving.says(4)  # of the three it knows nothing
    assert await leaving.admitted() == 1
    await leaving.says(7)
    assert await leaving.admitted() == 0, "the share is used up"
    leaving.clock.now += RULE.window_s
    await leaving.says(3)
    assert await leaving.admitted() == 3, "another window"


async def test_what_was_left_is_forgotten_with_its_window() -> None:
    leaving = Leaving()
    await leaving.says(0)
    leaving.clock.now += RULE.window_s - 1
    assert await leaving.admitted() == 0
    leaving.clock.now += 1
    assert await leaving.admitted() == 4


async def test_more_that_is_left_takes_the_place_of_less() -> None:
    leaving = Leaving()
    await leaving.says(0)
    await leaving.says(7)
    assert await leaving.admitted() == 4


async def test_synchronous_answers_are_remembered_too() -> None:
    for ask in ("hit", "peek"):
        leaving = Leaving()
        leaving.inner.left = 1
        assert getattr(leaving.store, ask)(RULE, "anna").remaining == 1
        leaving.inner.up = False
        assert await leaving.admitted() == 1


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remainders, "MAX_REMEMBERED", 3)
    leaving = Leaving()
    for key in ("anna", "bo", "cleo", "anna", "dan"):
        await leaving.says(0, key)
    for number in range(20):
        await leaving.says(7, f"somebody {number}")
    assert [await leaving.admitted(key) for key in ("anna", "bo", "cleo", "dan")] == [0, 4, 0, 0]
    assert len(leaving.store._remainders._said) == 3
