"""Owners share a bounded cache: the one that holds most loses its oldest values, whichever maximum is passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from gateway.lib.fair_share_cache import FairShareCache

Key = tuple[str, int]


def put(cache: FairShareCache[Key, str], owner: str, number: int, size_bytes: int = 1) -> None:
    cache.put((owner, number), f"{owner}{number}", owner=owner, size_bytes=size_bytes)


def test_a_value_is_found_replaced_and_removed() -> None:
    cache: FairShareCache[Key, str] = FairShareCache(max_bytes=10)
    put(cache, "a", 1, 3)
    cache.replace(("a", 1), "new")
    assert cache.get(("a", 1)) == cache.peek(("a", 1)) == "new"
    assert (len(cache), cache.size_bytes) == (1, 3)
    for _ in range(2):
        cache.pop(("a", 1))
    assert (cache.get(("a", 1)), cache.peek(("a", 1)), cache.size_bytes, cache._shares) == (None, None, 0, {})


def test_a_read_keeps_a_value_and_a_look_does_not() -> None:
    cache: FairShareCache[Key, str] = FairShareCache(max_bytes=2)
    for number in (1, 2):
        put(cache, "a", number)
    cache.peek(("a", 1))
    put(cache, "a", 3)
    assert list(cache) == [("a", 2), ("a", 3)]
    cache.get(("a", 2))
    put(cache, "a", 4)
    assert list(cache) == [("a", 2), ("a", 4)]


def test_each_maximum_takes_from_the_owner_that_holds_most_of_it() -> None:
    cache: FairShareCache[Key, str] = FairShareCache(max_bytes=100, max_entries=5)
    put(cache, "large", 1, 50)
    for number in range(4):
        put(cache, "many", number)
    put(cache, "other", 1)
    assert Counter(owner for owner, _ in cache) == {"large": 1, "many": 3, "other": 1}
    put(cache, "other", 1, 60)
    assert Counter(owner for owner, _ in cache) == {"large": 1, "many": 3}, "the owner of most bytes is the newcomer"


def test_sizes_that_have_changed_are_weighed_before_an_owner_loses_a_value() -> None:
    sizes = {"a1": 9, "a2": 1, "b1": 5, "c1": 1}
    dropped: list[str] = []
    cache: FairShareCache[Key, str] = FairShareCache(on_drop=dropped.append, weigh=sizes.__getitem__)
    for value, size_bytes in sizes.items():
        put(cache, value[0], int(value[1]), size_bytes)
    sizes["a1"], sizes["b1"] = 2, 4
    for left in (6, 2, 1, 0):
        cache.evict()
        assert cache.size_bytes == sum(sizes.values()) - sum(sizes[value] for value in dropped)
        assert cache.size_bytes <= left
    assert (dropped[:3], len(cache)) == (["b1", "a1", dropped[2]], 0)
    put(cache, "a", 1)
    cache.pop(("a", 1))
    put(cache, "b", 1)
    put(cache, "b", 1)
    assert dropped[4:] == ["a1", "b1"]


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 9), st.booleans()), max_size=60)


@given(STEPS)
def test_the_values_left_are_those_of_a_plain_model(steps: list[tuple[str, int, int, bool]]) -> None:
    cache: FairShareCache[Key, str] = FairShareCache(max_bytes=20, max_entries=6)
    plain: dict[Key, int] = {}  # in the order of the last use
    for owner, number, size_bytes, is_put in steps:
        key = (owner, number)
        if not is_put:
            assert (cache.get(key) is not None) == (key in plain)
            if key in plain:
                plain[key] = plain.pop(key)
            continue
        put(cache, owner, number, size_bytes)
        plain.pop(key, None)
        plain[key] = size_bytes
        # Of owners that hold equally much, the cache may choose any, so several outcomes are right.
        outcomes = list(evictions(plain))
        assert set(cache) in [set(left) for left in outcomes]
        plain = next(left for left in outcomes if set(cache) == set(left))
        assert cache.size_bytes == sum(plain.values())


def evictions(plain: dict[Key, int]) -> Iterator[dict[Key, int]]:
    """The values that may be left: by number of entries first, then by bytes."""
    if len(plain) > 6:
        weight = dict.fromkeys(plain, 1)
    elif sum(plain.values()) > 20:
        weight = plain
    else:
        yield plain
        return
    held: Counter[str] = Counter()
    for key in plain:
        held[key[0]] += weight[key]
    for owner in [owner for owner, number in held.items() if number == max(held.values())]:
        oldest = next(key for key in plain if key[0] == owner)
        yield from evictions({key: size for key, size in plain.items() if key != oldest})
