"""Kept tool lists: equal ones once, and an organization's never in the place of those of another that holds less."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.protocol.tool_names import ExposedTools
from proxy.vendors.destination import PoolKey
from proxy.vendors.tool_list import ToolList
from proxy.vendors.tool_list_cache import ToolIndex, ToolListCache

GREEDY, MODEST, SMALL = (uuid.UUID(int=number) for number in (1, 2, 3))


@pytest.fixture
def cache() -> ToolListCache:
    """Room for ten indexes and a thousand bytes."""
    return ToolListCache(max_indexes=10, max_list_bytes=1_000)


def listed(digest: bytes, size_bytes: int) -> ToolList:
    return ToolList(ExposedTools("acme", []), {}, {}, {}, digest, size_bytes, size_bytes)


def keep(cache: ToolListCache, org: uuid.UUID, size_bytes: int, digest: bytes = b"") -> PoolKey:
    """An index of its own, of a list of its own unless there is a `digest`."""
    key = PoolKey.of(org, "acme", uuid.uuid4(), "https://vendor.example/mcp", {})
    put(cache, key, size_bytes, digest or key.digest)
    return key


def put(cache: ToolListCache, key: PoolKey, size_bytes: int, digest: bytes) -> ToolIndex:
    index = cache.put(key, ToolIndex(listed(digest, size_bytes), 0.0))
    contents = {each.content.digest: each.content.kept_bytes for each in indexes(cache)}
    assert cache.list_bytes == sum(contents.values()) <= 1_000
    assert set(cache._lists.by_digest) == set(contents), "a list stays as long as an index points to it"
    assert len(cache) <= 10
    return index


def indexes(cache: ToolListCache) -> list[ToolIndex]:
    return [index for key in cache if (index := cache.peek(key)) is not None]


def test_equal_lists_are_one_object_and_count_once(cache: ToolListCache) -> None:
    keys = [keep(cache, org, 400, b"same") for org in (GREEDY, MODEST, SMALL)]
    assert len({id(index.content) for index in indexes(cache)}) == 1
    assert (len(cache), cache.distinct, cache.list_bytes) == (3, 1, 400)
    for key in keys[:2]:
        put(cache, key, 100, b"new")
    assert (len(cache), cache.distinct, cache.list_bytes) == (3, 2, 500)
    put(cache, keys[2], 100, b"new")
    assert (cache.distinct, cache.list_bytes, cache.content(b"same")) == (1, 100, None)


def test_a_list_that_comes_again_replaces_nothing(cache: ToolListCache) -> None:
    key = keep(cache, SMALL, 400, b"same")
    first = cache.content(b"same")
    again = put(cache, key, 400, b"same")
    assert again.content is first is cache.content(b"same")
    assert (len(cache), cache.list_bytes) == (1, 400)


def test_large_lists_of_one_organization_displace_its_own_only(cache: ToolListCache) -> None:
    others = [keep(cache, MODEST, 100), keep(cache, MODEST, 100), keep(cache, SMALL, 10)]
    greedy = [keep(cache, GREEDY, 300) for _ in range(8)]
    assert list(cache) == [*others, *greedy[-2:]], "the newest of its own stay"


def test_many_lists_of_one_organization_displace_its_own_only(cache: ToolListCache) -> None:
    others = [keep(cache, MODEST, 1), keep(cache, SMALL, 0)]
    greedy = [keep(cache, GREEDY, 0) for _ in range(50)]
    assert list(cache) == [*others, *greedy[-8:]]


def test_many_equal_lists_displace_no_list_of_another(cache: ToolListCache) -> None:
    own = keep(cache, SMALL, 50)
    shared = [keep(cache, uuid.UUID(int=number), 600, b"same") for number in range(10, 14)]
    greedy = [keep(cache, GREEDY, 90) for _ in range(5)]
    assert list(cache) == [own, *shared, *greedy[-3:]]


def test_the_organization_that_holds_most_gives_way(cache: ToolListCache) -> None:
    for _ in range(9):
        keep(cache, GREEDY, 110)
    keep(cache, SMALL, 250)
    assert Counter(key.org_id for key in cache) == {GREEDY: 6, SMALL: 1}


def test_what_was_used_last_stays(cache: ToolListCache) -> None:
    keys = [keep(cache, GREEDY, 400) for _ in range(2)]
    cache.get(keys[0])
    new = keep(cache, GREEDY, 400)
    assert set(cache) == {keys[0], new}


def test_one_list_that_is_larger_than_the_bound_is_not_kept(cache: ToolListCache) -> None:
    small = keep(cache, SMALL, 10)
    keep(cache, GREEDY, 1_001)
    assert list(cache) == [small]


SIZES = {b"a": 200, b"b": 300, b"c": 500, b"d": 900}
STEPS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5), st.sampled_from(sorted(SIZES))), max_size=60)


@given(STEPS)
def test_bytes_and_pointers_agree_after_any_steps(steps: list[tuple[int, int, bytes]]) -> None:
    cache = ToolListCache(max_indexes=10, max_list_bytes=1_000)
    for org, credential, digest in steps:
        url = "https://vendor.example/mcp"
        key = PoolKey.of(uuid.UUID(int=org), "acme", uuid.UUID(int=credential), url, {})
        put(cache, key, SIZES[digest], digest)
