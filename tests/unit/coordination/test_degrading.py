"""While the store is away: limits shrink to this process's share, epochs are unknown, nothing is unlimited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.coordination.degrading import RETRY_AFTER_S, DegradingStore
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationUnavailable

RULE = Rule("tools", limit=8, window_s=3600)


class FlakyStore:
    """Answers while `up`, remembers bumps."""

    def __init__(self) -> None:
        self.up = True
        self.asked = 0
        self.bumped: list[str] = []

    def _answer(self) -> None:
        self.asked += 1
        if not self.up:
            raise CoordinationUnavailable("gone")

    async def admit(self, rule: Rule, key: str, epochs: Sequence[str]) -> Admission:
        self._answer()
        return Admission(rule, True, rule.limit - 1, 0, tuple("e" for _ in epochs))

    def hit(self, rule: Rule, key: str) -> Admission:
        self._answer()
        return Admission(rule, True, rule.limit - 1, 0, None)

    def peek(self, rule: Rule, key: str) -> Admission:
        self._answer()
        return Admission(rule, True, rule.limit, 0, None)

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
