"""The cache of data keys is bounded in number and time, forgets on demand, and shows nothing."""

from __future__ import annotations

import threading
from uuid import UUID, uuid4

import pytest

from credentials.data_key_cache import CacheKey, DataKeyCache


class Clock:
    """A clock that moves when told."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def key(organization: UUID | None = None, *, version: int = 1, key_id: str = "a", digest: bytes = b"d") -> CacheKey:
    return CacheKey(organization or uuid4(), version, key_id, digest)


def test_what_was_put_is_found_and_nothing_else() -> None:
    cache, organization = DataKeyCache(max_entries=10), uuid4()
    cache.put(key(organization), b"k")
    assert cache.get(key(organization)) == b"k"
    for other in (
        key(),
        key(organization, version=2),
        key(organization, key_id="b"),
        key(organization, digest=b"e"),
    ):
        assert cache.get(other) is None


def test_the_oldest_goes_when_it_is_full() -> None:
    cache = DataKeyCache(max_entries=2)
    keys = [key() for _ in range(3)]
    for each in keys:
        cache.put(each, b"k")
    assert [cache.get(each) for each in keys] == [None, b"k", b"k"]
    assert len(cache) == 2


def test_an_old_key_is_not_served_and_leaves_with_the_next_write() -> None:
    clock = Clock()
    cache = DataKeyCache(max_entries=10, lifetime_s=10, now=clock)
    first, second = key(), key()
    cache.put(first, b"k")
    clock.now_s += 9.9
    assert cache.get(first) == b"k"
    clock.now_s += 0.1
    assert cache.get(first) is None
    cache.put(second, b"k")
    assert len(cache) == 1


def test_a_key_put_again_lives_its_whole_time() -> None:
    clock = Clock()
    cache = DataKeyCache(max_entries=2, lifetime_s=10, now=clock)
    first, second = key(), key()
    cache.put(first, b"1")
    cache.put(second, b"2")
    clock.now_s += 8
    cache.put(first, b"1")
    clock.now_s += 8
    cache.put(key(), b"3")
    assert cache.get(first) == b"1"
    assert cache.get(second) is None


def test_forgetting_takes_one_organization_only() -> None:
    cache, gone, stays = DataKeyCache(max_entries=10), uuid4(), uuid4()
    for version in (1, 2):
        cache.put(key(gone, version=version), b"g")
        cache.put(key(stays, version=version), b"s")
    cache.forget(gone)
    assert [cache.get(key(gone, version=version)) for version in (1, 2)] == [None, None]
    assert [cache.get(key(stays, version=version)) for version in (1, 2)] == [b"s", b"s"]
    cache.forget(gone)


def test_a_cache_of_no_size_or_no_time_keeps_nothing() -> None:
    for cache in (DataKeyCache(max_entries=0), DataKeyCache(max_entries=10, lifetime_s=0)):
        cache.put(key(), b"k")
        assert len(cache) == 0


def test_neither_keys_nor_owners_are_shown() -> None:
    cache, organization = DataKeyCache(max_entries=10), uuid4()
    cache.put(key(organization), b"the-data-key")
    assert repr(cache) == str(cache) == "DataKeyCache(1 entries)"
    with pytest.raises(AttributeError):
        cache.__dict__  # noqa: B018


def test_writers_in_many_threads_keep_the_bound() -> None:
    cache, organization = DataKeyCache(max_entries=50), uuid4()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(300):
                cache.put(key(digest=bytes([number % 256])), b"k")
                cache.forget(organization)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(cache) == 50
