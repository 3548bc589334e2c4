"""While the store is away: limits shrink to this process's share, epochs are unknown, nothing is unlimited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from django.db import OperationalError

from gateway.coordination import fallback_store, last_known_quota, retry_thread
from gateway.coordination.fallback_store import LOG_EVERY_S, FallbackStore
from gateway.coordination.retry_thread import RetryThread
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission, CoordinationStore, CoordinationUnavailable

RULE = Rule("tools", limit=8, window_s=3600)


class FlakyStore:
    """Answers while `up`, with what is `left` where that is said, and remembers bumps."""

    def __init__(self) -> None:
        self.up = True
        self.asked = 0
        self.bumped: list[str] = []
        self.renewed: list[str] = []
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

    async def charge(self, rule: Rule, key: str, units: int) -> Admission:
        self._answer()
        return self._admission(rule, rule.limit - units, ())

    def hit(self, rule: Rule, key: str) -> Admission:
        self._answer()
        return self._admission(rule, rule.limit - 1, None)

    def peek(self, rule: Rule, key: str) -> Admission:
        self._answer()
        return self._admission(rule, rule.limit, None)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        self._answer()
        return tuple("e" for _ in names)

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        self._answer()
        return tuple("e" for _ in names)

    async def renew_epoch(self, name: str) -> None:
        self._answer()
        self.renewed.append(name)

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


class Box:
    """An outbox whose database is there while `up`; `put_by_others` is what other processes have left in it."""

    def __init__(self) -> None:
        self.up = True
        self.names: list[str] = []

    def put(self, names: Sequence[str]) -> None:
        self._answer()
        self.names.extend(names)

    def relay(self, store: CoordinationStore) -> int:
        self._answer()
        store.bump_epochs(list(self.names))
        relayed, self.names = len(self.names), []
        return relayed

    def _answer(self) -> None:
        if not self.up:
            raise OperationalError


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread tests the store: the tests say when it is tested."""
    monkeypatch.setattr(RetryThread, "start", lambda self: None)


def made(processes: int = 2, box: Box | None = None) -> tuple[FallbackStore, FlakyStore, Clock]:
    inner, clock = FlakyStore(), Clock()
    return FallbackStore(inner, processes=processes, outbox=box, monotonic=clock), inner, clock


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


async def test_a_charge_passes_through_and_falls_back_to_the_share() -> None:
    store, inner, clock = made(processes=2)
    assert (await store.charge(RULE, "anna", 3)).remaining == RULE.limit - 3
    inner.up = False
    answers = [await store.charge(RULE, "bo", units) for units in (3, 2, 1)]
    assert [answer.allowed for answer in answers] == [True, False, True]
    assert [(answer.remaining, answer.epochs) for answer in answers] == [(1, None), (1, None), (0, None)]
    assert answers[1].retry_after_s > 0
    assert not store.hit(RULE, "bo").allowed, "of the same window"
    whole = [(await store.charge(RULE, "cy", 8)).allowed for _ in range(2)]
    assert whole == [True, False], "what needs more than the share has all of it, once"
    clock.now += RULE.window_s * 61 / 60
    assert (await store.charge(RULE, "cy", 8)).allowed


async def test_a_peek_passes_through_and_falls_back_to_the_local_count() -> None:
    store, inner, _ = made(processes=2)
    assert store.peek(RULE, "anna").remaining == RULE.limit
    inner.up = False
    for left in (4, 3, 2, 1):
        assert store.peek(RULE, "anna").remaining == left
        store.hit(RULE, "anna")
    refused = store.peek(RULE, "anna")
    assert (refused.allowed, refused.remaining, refused.retry_after_s > 0) == (False, 0, True)
    assert store.peek(RULE, "bo").allowed


async def test_a_dead_store_is_asked_once_and_believed_when_it_was_found_back() -> None:
    store, inner, _ = made()
    inner.up = False
    for _ in range(5):
        await store.admit(RULE, "anna", ())
        assert await store.read_epochs(("a",)) is await store.begin_epochs(("a",)) is None
        assert store.health(["acme"]) == {}
        store.put_health("acme", b"", 1)
        await store.renew_epoch("a")
        for count in (store.ping, lambda: store.bump_epochs(["a"])):
            with pytest.raises(CoordinationUnavailable):
                count()
    assert inner.asked == 1
    assert not store.recover()
    inner.up = True
    assert (await store.admit(RULE, "anna", ("a",))).epochs is None, "a call does not test the store"
    assert store.recover()
    assert (await store.admit(RULE, "anna", ("a",))).epochs == ("e",)
    store.ping()


def test_a_bump_that_found_the_store_away_says_so() -> None:
    store, inner, _ = made()
    store.bump_epochs(["subject:a"])
    inner.up = False
    with pytest.raises(CoordinationUnavailable):
        store.bump_epochs(["subject:b"])
    assert inner.bumped == ["subject:a"]


async def test_nothing_is_believed_before_the_outbox_is_empty() -> None:
    """Another process committed a revocation and died; the store came back with the old epochs."""
    box = Box()
    store, inner, _ = made(box=box)
    inner.up = False
    await store.admit(RULE, "anna", ())
    box.names = ["subject:a"]
    inner.up, box.up = True, False
    assert not store.recover()
    assert (await store.admit(RULE, "anna", ("a",))).epochs is None
    assert inner.bumped == []
    box.up = True
    assert store.recover()
    assert (inner.bumped, box.names) == (["subject:a"], [])
    assert (await store.admit(RULE, "anna", ("a",))).epochs == ("e",)


async def test_missed_renewals_go_to_the_outbox_and_are_sent_before_epochs_are_believed() -> None:
    box = Box()
    store, inner, _ = made(box=box)
    inner.up = False
    for name in ("cache:a", "cache:b", "cache:a"):
        await store.renew_epoch(name)
    assert inner.asked == 1
    assert not store.recover()
    assert box.names == ["cache:a", "cache:b"], "they outlive the process"
    await store.renew_epoch("cache:c")
    inner.up = True
    assert store.recover()
    assert inner.bumped == ["cache:c", "cache:a", "cache:b"]
    assert store.recover()
    assert inner.bumped == ["cache:c", "cache:a", "cache:b"], "once"
    await store.renew_epoch("cache:a")
    assert inner.renewed == ["cache:a"]


async def missing_one(
    during_recovery: Callable[[FallbackStore, FlakyStore], None],
) -> tuple[FallbackStore, FlakyStore]:
    """A store that is back. `during_recovery` runs, in a thread, when the renewal that it missed was just sent."""
    store, inner, _ = made(box=Box())
    inner.up = False
    await store.renew_epoch("cache:a")
    inner.up = True
    send = inner.bump_epochs

    def sent(names: Sequence[str]) -> None:
        send(names)
        if names:
            inner.bump_epochs = send  # type: ignore[method-assign]
            during_recovery(store, inner)

    inner.bump_epochs = sent  # type: ignore[method-assign]
    return store, inner


async def test_a_renewal_missed_while_the_others_are_sent_is_not_forgotten() -> None:
    def another_write_ends(store: FallbackStore, inner: FlakyStore) -> None:
        inner.up = False
        asyncio.run_coroutine_threadsafe(store.renew_epoch("cache:a"), loop).result()
        inner.up = True

    loop = asyncio.get_running_loop()
    store, inner = await missing_one(another_write_ends)
    assert not await asyncio.to_thread(store.recover)
    assert (await store.admit(RULE, "anna", ("a",))).epochs is None
    assert store.recover()
    assert inner.bumped == ["cache:a", "cache:a"]


async def test_writes_that_never_cease_keep_no_store_from_being_believed() -> None:
    """Each recovery meets a call's renewal and a page's bump: both go to the store, which answers again."""

    def writes_end(store: FallbackStore, inner: FlakyStore) -> None:
        asyncio.run_coroutine_threadsafe(store.renew_epoch("cache:b"), loop).result()
        store.bump_epochs(["subject:c"])
        assert store._is_down, "it is not believed yet"

    loop = asyncio.get_running_loop()
    store, inner = await missing_one(writes_end)
    assert await asyncio.to_thread(store.recover)
    assert (inner.bumped, inner.renewed) == (["cache:a", "subject:c"], ["cache:b"])
    assert (await store.admit(RULE, "anna", ("a",))).epochs == ("e",)


async def test_a_store_that_goes_away_again_is_not_written_to() -> None:
    store, inner, _ = made(box=Box())
    inner.up = False
    await store.renew_epoch("cache:a")
    store._is_catching_up = True
    await store.renew_epoch("cache:b")
    asked = inner.asked
    await store.renew_epoch("cache:c")
    with pytest.raises(CoordinationUnavailable):
        store.bump_epochs(["subject:d"])
    assert inner.asked == asked
    inner.up = True
    assert store.recover()
    assert inner.bumped == ["cache:a", "cache:b", "cache:c"]


async def test_the_log_hears_of_an_outage_at_once_and_then_every_few_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, inner, clock = made()
    inner.up = False
    await store.admit(RULE, "anna", ())
    for _ in range(20):
        clock.now += LOG_EVERY_S / 10
        store.recover()
    known = [record for record in caplog.records if record.name == fallback_store.__name__]
    assert len(known) == 3
    inner.up = True
    store.recover()


def test_one_thread_tests_the_store_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(retry_thread, "PROBE_EVERY_S", 0.001)
    store, inner, _ = made()
    inner.up = False
    back = threading.Event()

    class Outbox(Box):
        def relay(self, store: CoordinationStore) -> int:
            back.set()
            return 0

    store._outbox = Outbox()
    before = set(threading.enumerate())

    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread not in before]

    for _ in range(20):
        store.hit(RULE, "anna")
    assert threads() == ["coordination-recovery"]
    inner.up = True
    assert back.wait(20)
    store.stop()
    assert store.hit(RULE, "bo").remaining == RULE.limit - 1
    assert threads() == []


# --- what was left before the store went away ------------------------------------------------------------------------


class Leaving:
    """Goes away and comes back, says what is left, and hears nothing of what is admitted meanwhile."""

    def __init__(self, processes: int = 2) -> None:
        self.store, self.inner, self.clock = made(processes)

    async def says(self, left: int, key: str = "anna", *, retry_after_s: int = 0, rule: Rule = RULE) -> None:
        """The store answers once, and goes away."""
        self.inner.up = True
        assert self.store.recover()
        self.inner.left, self.inner.retry_after_s = left, retry_after_s
        answer = await self.store.admit(rule, key, ("a",))
        assert (answer.remaining, answer.epochs) == (left, ("e",))
        self.inner.up = False

    async def admitted(self, key: str = "anna", *, rule: Rule = RULE) -> int:
        """The number of calls that the process admits by itself; each refusal tells when to come back."""
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


@pytest.mark.parametrize(("left", "units", "allowed"), [(2, 3, False), (2, 2, True), (3, 8, False), (4, 8, True)])
async def test_a_charge_needs_what_was_left(left: int, units: int, allowed: bool) -> None:
    leaving = Leaving()
    await leaving.says(left, retry_after_s=90)
    answer = await leaving.store.charge(RULE, "anna", units)
    assert (answer.allowed, answer.retry_after_s) == (allowed, 0 if allowed else 90)
    assert leaving.store.peek(RULE, "anna").remaining == left - (min(units, left) if allowed else 0)


async def test_a_used_up_window_opens_for_nobody_who_is_alone_in_the_deployment() -> None:
    leaving = Leaving(processes=1)
    await leaving.says(0)
    assert await leaving.admitted() == 0
    assert await leaving.admitted("bo") == 8


@pytest.mark.parametrize(("said_s", "expected_s"), [(90, 90), (3, 3), (0, 1)])
async def test_who_has_nothing_left_learns_when_the_store_may_say_otherwise(said_s: int, expected_s: int) -> None:
    leaving = Leaving()
    await leaving.says(0, retry_after_s=said_s)
    answer = await leaving.store.admit(RULE, "anna", ())
    assert (answer.allowed, answer.remaining, answer.retry_after_s) == (False, 0, expected_s)
    leaving.clock.now += 1.5
    looked = leaving.store.peek(RULE, "anna")
    assert (looked.allowed, looked.remaining, looked.retry_after_s) == (False, 0, max(1, expected_s - 1)), (
        "whole seconds, up"
    )
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


async def test_more_that_is_left_replaces_less() -> None:
    leaving = Leaving()
    await leaving.says(0)
    await leaving.says(7)
    assert await leaving.admitted() == 4


async def test_synchronous_answers_are_remembered_too() -> None:
    for count in ("hit", "peek"):
        leaving = Leaving()
        leaving.inner.left = 1
        assert getattr(leaving.store, count)(RULE, "anna").remaining == 1
        leaving.inner.up = False
        assert await leaving.admitted() == 1


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_known_quota, "MAX_KNOWN", 3)
    leaving = Leaving()
    for key in ("anna", "bo", "cleo", "anna", "dan"):
        await leaving.says(0, key)
    for number in range(20):
        await leaving.says(7, f"somebody {number}")
    assert [await leaving.admitted(key) for key in ("anna", "bo", "cleo", "dan")] == [0, 4, 0, 0]
    assert len(leaving.store._last_known_quota._known) == 3
