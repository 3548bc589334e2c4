"""Blobs in Redis: kept for their time, claimed once, and unavailable without delay while Redis is away."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
from django.conf import settings

from gateway.coordination import blob_store
from gateway.coordination.blob_store import BlobStore
from gateway.coordination.store import CoordinationUnavailable
from tests.fakes.memory_blobs import MemoryBlobs
from tests.vendors.processes import free_port

STORES = ["memory", *(["redis"] if settings.REDIS_URL else [])]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[BlobStore | MemoryBlobs]:
    if request.param == "memory":
        yield MemoryBlobs()
        return
    made = BlobStore(settings.REDIS_URL, f"contract-{uuid.uuid4().hex}:")
    yield made
    made.close()


async def test_a_value_comes_back(store: BlobStore | MemoryBlobs) -> None:
    assert await store.get("a") is None
    value = bytes(range(256)) * 100
    await store.put("a", value, 60)
    await store.put("b", b"", 60)
    assert [await store.get(name) for name in ("a", "b", "c")] == [value, b"", None]


async def test_the_size_of_a_value_needs_no_reading(store: BlobStore | MemoryBlobs) -> None:
    await store.put("a", b"x" * 1_000, 60)
    assert [await store.size(name) for name in ("a", "b")] == [1_000, 0]


async def test_only_a_value_that_is_there_is_kept_for_longer(store: BlobStore | MemoryBlobs) -> None:
    await store.put("a", b"1", 60)
    assert [await store.extend(name, 60) for name in ("a", "b")] == [True, False]
    assert [await store.get(name) for name in ("a", "b")] == [b"1", None]


async def test_one_of_many_claims_a_name(store: BlobStore | MemoryBlobs) -> None:
    assert sorted(await asyncio.gather(*[store.claim("a", 60) for _ in range(5)])) == [False] * 4 + [True]
    assert await store.claim("b", 60)


async def test_a_value_that_no_reply_can_carry_is_not_stored(store: BlobStore | MemoryBlobs) -> None:
    await store.put("a", b"x" * store.max_value_bytes, 60)
    await store.put("b", b"x" * (store.max_value_bytes + 1), 60)
    assert [await store.get(name) for name in ("a", "b")] == [b"x" * blob_store.MAX_VALUE_BYTES, None]


async def test_after_a_failure_nothing_is_asked_for_a_while() -> None:
    now_s = 0.0
    made = BlobStore(f"redis://127.0.0.1:{free_port()}/0", "test:", monotonic=lambda: now_s)
    asked: list[bytes] = []
    execute = made._redis.execute

    async def recording(command: bytes) -> object:
        asked.append(command)
        return await execute(command)

    made._redis.execute = recording  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(CoordinationUnavailable):
            await made.get("a")
    assert len(asked) == 1
    now_s = blob_store.PAUSE_S
    with pytest.raises(CoordinationUnavailable):
        await made.put("a", b"", 60)
    assert len(asked) == 2
