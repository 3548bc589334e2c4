"""Kept results: who gets one, who never does, and how much memory they may take."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from proxy.cache import result_cache
from proxy.cache.keys import CacheKey
from proxy.cache.result_cache import ENTRY_BYTES, RESULT_BYTES, ResultCache, VendorOutcome
from proxy.outcomes import CacheStatus, Delivered, Failed, VendorError, VendorFault

HIT, MISS = CacheStatus.HIT, CacheStatus.MISS


@dataclass(frozen=True)
class Place:
    org_id: uuid.UUID


def key(name: str = "a", *, org: int = 1, scope: str = "org") -> CacheKey:
    place = Place(uuid.UUID(int=org))
    return CacheKey(f"{scope}:{org}", "acme", "t", name.encode(), uuid.UUID(int=1), 1, place)


def result(text: str = "x") -> Delivered:
    return Delivered(b'{"content":[{"type":"text","text":"%b"}]}' % text.encode(), is_error=False)


class Vendor:
    """Answers with a new result each time, or with what it is given; holds answers back while `gate` is closed."""

    def __init__(self, answer: VendorOutcome | None = None) -> None:
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._answer = answer

    async def __call__(self) -> VendorOutcome:
        self.calls += 1
        number = self.calls
        await self.gate.wait()
        return self._answer or result(str(number))


CAPACITY_BYTES = 64 * 1024 * 1024


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_result_is_used_again_until_its_time_is_over() -> None:
    clock = Clock()
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES, monotonic=clock), Vendor()
    assert await cache.read(key(), "e", 60, vendor) == (result("1"), MISS)
    clock.now += 59.9
    assert await cache.read(key(), "e", 60, vendor) == (result("1"), HIT)
    clock.now += 0.1
    assert await cache.read(key(), "e", 60, vendor) == (result("2"), MISS)
    assert vendor.calls == 2


async def test_another_key_or_another_epoch_is_another_call() -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor()
    await cache.read(key(), "e", 60, vendor)
    assert await cache.read(key("b"), "e", 60, vendor) == (result("2"), MISS)
    assert await cache.read(key(), "f", 60, vendor) == (result("3"), MISS)
    assert await cache.read(key(), "e", 60, vendor) == (result("4"), MISS), "an old epoch does not come back"


@pytest.mark.parametrize(
    "answer",
    [
        Delivered(result().raw_result, is_error=True),
        VendorError(b'{"code":1,"message":"no"}', "no"),
        Failed("acme", VendorFault.TIMEOUT, "late"),
        Delivered(b'{"content":[{"type":"text","text":"%b"}]}' % (b"x" * RESULT_BYTES), is_error=False),
        Delivered(b'{"content":"not a list"}', is_error=False),
    ],
    ids=["tool error", "vendor error", "failure", "too large", "broken"],
)
async def test_what_is_no_usable_success_is_not_kept(answer: VendorOutcome) -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor(answer)
    for calls in (1, 2):
        assert await cache.read(key(), "e", 60, vendor) == (answer, MISS)
        assert vendor.calls == calls
    assert (len(cache._kept), cache._kept.size_bytes) == (0, 0)


async def ask_at_once(
    cache: ResultCache, vendor: Callable[[], Awaitable[VendorOutcome]], callers: int
) -> list[asyncio.Task]:  # type: ignore[type-arg]
    tasks = [asyncio.ensure_future(cache.read(key(), "e", 60, vendor)) for _ in range(callers)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_all_that_ask_at_once_share_one_call() -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor()
    vendor.gate.clear()
    tasks = await ask_at_once(cache, vendor, 100)
    vendor.gate.set()
    answers = await asyncio.gather(*tasks)
    assert [answer for answer, _ in answers] == [result("1")] * 100
    assert [how for _, how in answers].count(MISS) == 1
    assert vendor.calls == 1


async def test_the_first_may_leave() -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor()
    vendor.gate.clear()
    first, second = await ask_at_once(cache, vendor, 2)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    vendor.gate.set()
    assert await second == (result("1"), HIT)
    assert await cache.read(key(), "e", 60, vendor) == (result("1"), HIT)
    assert vendor.calls == 1


async def test_an_error_goes_to_all_that_wait_and_to_nobody_after() -> None:
    failed = Failed("acme", VendorFault.UNAVAILABLE, "gone")
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor(failed)
    vendor.gate.clear()
    tasks = await ask_at_once(cache, vendor, 3)
    vendor.gate.set()
    assert await asyncio.gather(*tasks) == [(failed, MISS)] * 3
    assert await cache.read(key(), "e", 60, Vendor()) == (result("1"), MISS)


async def test_who_saw_a_newer_epoch_does_not_join_an_older_call() -> None:
    cache, slow, quick = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor(result("old")), Vendor(result("new"))
    slow.gate.clear()
    (older,) = await ask_at_once(cache, slow, 1)
    assert await cache.read(key(), "f", 60, quick) == (result("new"), MISS)
    slow.gate.set()
    assert await older == (result("old"), MISS)
    again = Vendor(result("newest"))
    assert (await cache.read(key(), "f", 60, again))[0] in (result("new"), result("newest")), "never the old one"


async def test_memory_is_bounded_and_the_one_not_used_for_longest_goes_first() -> None:
    size = len(result("1").raw_result) + ENTRY_BYTES
    cache, vendor = ResultCache(capacity_bytes=3 * size), Vendor(result("1"))
    for name in ("a", "b", "c"):
        await cache.read(key(name), "e", 60, vendor)
    assert cache._kept.size_bytes == 3 * size
    await cache.read(key("a"), "e", 60, vendor)
    await cache.read(key("d"), "e", 60, vendor)
    assert (len(cache._kept), cache._kept.size_bytes) == (3, 3 * size)
    vendor.calls = 0
    assert [(await cache.read(key(name), "e", 60, vendor))[1] for name in ("a", "c", "d", "b")] == [HIT, HIT, HIT, MISS]


async def test_no_organization_takes_away_the_results_of_one_that_holds_less() -> None:
    size = len(result("1").raw_result) + ENTRY_BYTES
    cache, vendor = ResultCache(capacity_bytes=6 * size), Vendor(result("1"))
    for name in ("a", "b"):
        await cache.read(key(name, org=2), "e", 60, vendor)
    for number in range(20):
        await cache.read(key(str(number), scope=f"team:{number}"), "e", 60, vendor)
    assert (len(cache._kept), cache._kept.size_bytes) == (6, 6 * size)
    assert [(await cache.read(key(name, org=2), "e", 60, vendor))[1] for name in ("a", "b")] == [HIT, HIT]
    newest = [key(str(number), scope=f"team:{number}") for number in range(16, 20)]
    assert [(await cache.read(each, "e", 60, vendor))[1] for each in newest] == [HIT] * 4
    for name in ("c", "d", "e"):
        await cache.read(key(name, org=2), "e", 60, vendor)
    held = [each.owner.int for each in cache._kept]
    assert (held.count(1), held.count(2)) == (3, 3), "who comes later gets an equal share"


async def test_the_one_large_holder_is_evicted_from_whatever_was_dropped_before() -> None:
    """Against a plain reckoning: who holds most, and what of it was used longest ago."""
    chance = random.Random(7)
    capacity_bytes = 40 * ENTRY_BYTES
    cache = ResultCache(capacity_bytes=capacity_bytes)
    plain: dict[CacheKey, tuple[str, int]] = {}  # in the order of their last use
    for _ in range(3_000):
        each, epoch = key(str(chance.randrange(12)), org=chance.randrange(5)), chance.choice("eeeef")
        sent = result("x" * chance.randrange(3 * ENTRY_BYTES))
        known = plain.pop(each, None)
        is_hit = known is not None and known[0] == epoch
        answered = await cache.read(each, epoch, 60, Vendor(sent))
        assert answered[1] is (HIT if is_hit else MISS)
        plain[each] = known if known and is_hit else (epoch, len(sent.raw_result) + ENTRY_BYTES)
        while sum(size for _, size in plain.values()) > capacity_bytes:
            held: Counter[uuid.UUID] = Counter()
            for one, (_, size) in plain.items():
                held[one.owner] += size
            most = max(held.values())
            largest = [owner for owner in held if held[owner] == most]
            oldest = [next(one for one in plain if one.owner == owner) for owner in largest]
            (gone,) = [one for one in oldest if one not in cache._kept][:1]
            del plain[gone]
        assert set(cache._kept) == set(plain)
        assert cache._kept.size_bytes == sum(size for _, size in plain.values())
        assert {owner: share.size_bytes for owner, share in cache._kept._shares.items()} == {
            owner: sum(size for one, (_, size) in plain.items() if one.owner == owner)
            for owner in {one.owner for one in plain}
        }


async def test_what_is_remembered_of_sizes_does_not_grow_with_the_calls() -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor()
    for number in range(1_000):
        await cache.read(key(org=number % 3), f"e{number}", 60, vendor)
    assert len(cache._kept) == 3
    assert len(cache._kept._most_bytes) <= 2 * 3 + 64


async def test_a_result_under_another_key_is_not_served() -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor()
    await cache.read(key("a"), "e", 60, vendor)
    of_another = cache._kept.peek(key("a"))
    assert of_another is not None
    cache._kept.put(key("b"), of_another, owner=key("b").owner, size_bytes=1)
    assert await cache.read(key("b"), "e", 60, vendor) == (result("2"), MISS)


async def test_a_flight_with_another_key_is_not_served() -> None:
    cache = ResultCache(capacity_bytes=CAPACITY_BYTES)

    async def stranger() -> tuple[CacheKey, VendorOutcome]:
        return key("b"), result("of somebody else")

    landing = asyncio.ensure_future(cache._flights.run((key("a"), "e"), stranger))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="another call"):
        await cache.read(key("a"), "e", 60, Vendor())
    await landing


async def test_who_does_not_share_has_a_vendor_call_of_its_own_and_leaves_its_result() -> None:
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor()
    vendor.gate.clear()
    shared = asyncio.ensure_future(cache.read(key(), "e", 60, vendor))
    alone = asyncio.ensure_future(cache.read(key(), "e", 60, vendor, is_shareable=False))
    left = asyncio.ensure_future(cache.read(key(), "e", 60, vendor, is_shareable=False))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    vendor.gate.set()
    answers = [await shared, await alone]
    assert [status for _, status in answers] == [MISS, MISS]
    assert answers[0] != answers[1]
    assert left.cancelled()
    kept, status = await cache.read(key(), "e", 60, vendor, is_shareable=False)
    assert status is HIT
    assert (kept, MISS) in answers
    assert vendor.calls == 3


async def test_nobody_waits_for_the_check_of_a_long_result(monkeypatch: pytest.MonkeyPatch) -> None:
    may_begin = asyncio.Event()

    async def run_in_thread(owner: object, work: Callable[[], bool], deadline: float | None = None) -> bool:
        await may_begin.wait()
        return work()

    monkeypatch.setattr(result_cache.fair_scheduler, "run_in_thread", run_in_thread)
    long = result("x" * 2 * result_cache.fair_scheduler.INLINE_BYTES)
    cache, vendor = ResultCache(capacity_bytes=CAPACITY_BYTES), Vendor(long)
    broken = Delivered(b'{"content":%b}' % (b" " * len(long.raw_result)), is_error=False)
    for name, answer in (("a", long), ("b", broken), ("c", long)):
        assert await cache.read(key(name), "e", 60, Vendor(answer)) == (answer, MISS)
    assert len(cache._kept) == 0
    assert await cache.read(key("c"), "f", 60, vendor) == (long, MISS)
    may_begin.set()
    await cache.settled()
    assert await cache.read(key("a"), "e", 60, vendor) == (long, HIT)
    assert await cache.read(key("b"), "e", 60, vendor) == (long, MISS), "it was broken"
    assert await cache.read(key("c"), "f", 60, vendor) == (long, HIT)
    monkeypatch.setattr(result_cache, "MAX_CONCURRENT_CHECKS", 0)
    await cache.settled()
    assert await cache.read(key("d"), "e", 60, vendor) == (long, MISS)
    assert await cache.read(key("d"), "e", 60, vendor) == (long, MISS)
