"""When results may be kept, and that a write ends it everywhere."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from gateway.coordination.store import CoordinationUnavailable
from proxy.cache.scope_epochs import ScopeEpochs


class Store:
    """The two methods that count, over one dict that "processes" share."""

    def __init__(self, values: dict[str, str] | None = None) -> None:
        self.values = {} if values is None else values
        self.bumps = 0
        self.away: str = ""  # "" | raises | unknown | no-writes
        self._numbers = itertools.count(1)

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        await asyncio.sleep(0)
        if self.away == "raises":
            raise CoordinationUnavailable("test")
        return None if self.away == "unknown" else tuple(self.values.get(name, "") for name in names)

    async def begin_epochs(self, names: Sequence[str]) -> tuple[str, ...] | None:
        await self._write()
        for name in names:
            if name not in self.values:
                self.values[name] = self._new()
        return await self.read_epochs(names)

    async def renew_epoch(self, name: str) -> None:
        await self._write()
        if name in self.values:
            self.values[name] = self._new()

    async def _write(self) -> None:
        await asyncio.sleep(0)
        if self.away in ("raises", "no-writes"):
            raise CoordinationUnavailable("test")

    def _new(self) -> str:
        self.bumps += 1
        return f"value-{id(self)}-{next(self._numbers)}"


@pytest.fixture
def store() -> Store:
    return Store()


def epochs_over(store: Store) -> ScopeEpochs:
    return ScopeEpochs(store)  # type: ignore[arg-type]


async def test_a_name_without_a_value_gets_one_once_however_many_ask(store: Store) -> None:
    epochs = epochs_over(store)
    values = await asyncio.gather(*(epochs.current("n", "") for _ in range(50)))
    assert len(set(values)) == 1
    assert values[0]
    assert await epochs.current("n", "") == values[0], "what was seen before it began is looked at again"
    assert store.bumps == 1


async def test_a_value_that_was_just_seen_costs_nothing(store: Store) -> None:
    assert await epochs_over(store).current("n", "seen") == "seen"
    assert (store.bumps, store.values) == (0, {})


@pytest.mark.parametrize("away", ["raises", "unknown"])
async def test_nothing_is_kept_while_nobody_can_say(store: Store, away: str) -> None:
    store.away = away
    assert await epochs_over(store).current("n") is None
    assert await epochs_over(store).current("n", "") is None


async def test_a_write_renews_what_another_process_reads(store: Store) -> None:
    here, there = epochs_over(store), epochs_over(Store(store.values))
    before = await there.current("n")
    await here.renew("n")
    assert await there.current("n") not in (before, None)


async def test_a_write_where_nothing_is_kept_writes_nothing(store: Store) -> None:
    await epochs_over(store).renew("n")
    assert store.bumps == 0


async def test_a_store_that_forgot_does_not_bring_old_results_back(store: Store) -> None:
    epochs = epochs_over(store)
    before = await epochs.current("n")
    store.values.clear()
    assert await epochs.current("n") not in (before, "", None)


async def test_a_renewal_that_failed_is_made_up_for_before_anything_is_used(store: Store) -> None:
    epochs = epochs_over(store)
    before = await epochs.current("n")
    store.away = "no-writes"
    await epochs.renew("n")
    assert await epochs.current("n", before) is None, "what admission saw is from before the write"
    store.away = ""
    assert await epochs.current("n", before) not in (before, None)


async def test_a_caller_that_leaves_does_not_stop_the_renewal(store: Store) -> None:
    epochs = epochs_over(store)
    before = await epochs.current("n")
    leaving = asyncio.ensure_future(epochs.renew("n"))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    while store.values["n"] == before:
        await asyncio.sleep(0)
    assert store.values["n"] != before
