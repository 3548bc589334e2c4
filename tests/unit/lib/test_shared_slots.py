"""A few slots in all, fewer for one owner; each is given back once."""

from __future__ import annotations

import threading
from functools import partial

from gateway.lib.shared_slots import SharedSlots, SlotResult
from tests.factories.races import START_S, at_once


def test_owners_share_them() -> None:
    slots: SharedSlots[str] = SharedSlots(size=3, of_owner=2)
    assert [slots.take("acme") for _ in range(3)] == [
        SlotResult.TAKEN,
        SlotResult.TAKEN,
        SlotResult.OWNER_HAS_ALL_OF_ITS,
    ]
    assert slots.take("globex") is SlotResult.TAKEN
    assert slots.take("globex") is SlotResult.NONE_FREE
    assert slots.take("acme") is SlotResult.OWNER_HAS_ALL_OF_ITS, "which an owner can end by itself"
    slots.give_back("acme")
    assert slots.take("globex") is SlotResult.TAKEN
    for owner in ("acme", "globex", "globex"):
        slots.give_back(owner)
    assert not slots.taken


def test_the_garbage_collector_gives_a_slot_back_in_the_midst_of_a_take() -> None:
    slots: SharedSlots[str] = SharedSlots(size=2, of_owner=1)
    assert slots.take("acme") is SlotResult.TAKEN
    held = ["acme"]

    class Interrupting(str):
        """As an owner that is looked up, it runs what a collection at that moment runs."""

        def __hash__(self) -> int:
            if held:
                slots.give_back(held.pop())
            return super().__hash__()

    thread = threading.Thread(target=slots.take, args=(Interrupting("globex"),), daemon=True)
    thread.start()
    thread.join(START_S)
    assert not thread.is_alive(), "it waits for itself"
    assert slots.taken == {"globex": 1}


def test_many_threads_take_no_slot_too_many() -> None:
    slots: SharedSlots[int] = SharedSlots(size=8, of_owner=2)
    results = at_once(*[partial(slots.take, number % 10) for number in range(50)])
    assert results.count(SlotResult.TAKEN) == sum(slots.taken.values()) == 8
    assert max(slots.taken.values()) <= 2
