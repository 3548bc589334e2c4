"""Tool lists in a store: sealed, bound to their credential, one body for equal lists, and never believed unread."""

from __future__ import annotations

import uuid
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from gateway.catalog.vendor import ToolOverride, Vendor
from proxy.protocol import replies
from proxy.vendors import stored_lists
from proxy.vendors.destination import PoolKey
from proxy.vendors.stored_lists import HOUR_S, StoredLists
from proxy.vendors.tool_list import MAX_LIST_BYTES, ReceivedList
from tests.fakes.memory_blobs import MemoryBlobs

ACME = Vendor(slug="acme", name="Acme", url="https://acme.example/mcp")
TOOLS = [{"name": "acme_list", "description": "Lists the secret plans of Mrs. Robinson.", "inputSchema": {}}]
TTL_S = 3_600


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


def stored(blobs: MemoryBlobs, secret: bytes = b"secret") -> StoredLists:
    return StoredLists(blobs, secret, ttl_s=TTL_S, now_s=lambda: blobs.now_s)


async def found(lists: StoredLists, key: PoolKey, vendor: Vendor = ACME) -> ReceivedList | None:
    pointer = await lists.find(key)
    return None if pointer is None else await lists.body(vendor, key, pointer)


def received(tools: list[Any] = TOOLS, vendor: Vendor = ACME) -> ReceivedList:
    raw = msgspec.json.encode({"tools": tools})
    return ReceivedList.of(vendor, replies.raw_tools_page(raw).tools, len(raw))


def key_of(org: int = 1, credential: int = 1, vendor: str = "acme", api_key: str = "right-key") -> PoolKey:
    url = "https://acme.example/mcp"
    return PoolKey.of(uuid.UUID(int=org), vendor, uuid.UUID(int=credential), url, {"X-Api-Key": api_key})


async def test_a_list_comes_back_as_it_was_with_its_age(blobs: MemoryBlobs) -> None:
    await stored(blobs).put(key_of(), received())
    blobs.now_s += 120.0
    again, pointer = await found(stored(blobs), key_of()), await stored(blobs).find(key_of())
    assert again is not None
    assert pointer is not None
    assert [bytes(each) for each in again.tools] == [bytes(each) for each in received().tools]
    assert (again.digest, again.size_bytes) == (received().digest, received().size_bytes)
    assert (pointer.digest, pointer.size_bytes, pointer.age_s) == (again.digest, again.size_bytes, 120.0)
    assert await stored(blobs).seen_ago_s(received().digest) == 120.0


async def test_equal_lists_of_many_credentials_are_one_body(blobs: MemoryBlobs) -> None:
    for org in range(1, 51):
        await stored(blobs).put(key_of(org), received())
    assert [len(blobs.of_kind(kind)) for kind in ("index", "list", "seen")] == [50, 1, 1]
    assert max(map(len, blobs.of_kind("index").values())) < 150


@pytest.mark.parametrize(
    "other",
    [key_of(org=2), key_of(credential=2), key_of(vendor="globex"), key_of(api_key="other-key")],
    ids=["organization", "credential", "vendor", "headers"],
)
async def test_a_pointer_is_of_one_organization_vendor_and_credential(blobs: MemoryBlobs, other: PoolKey) -> None:
    await stored(blobs).put(key_of(), received())
    assert await found(stored(blobs), other) is None
    (pointer,) = blobs.of_kind("index").values()
    await blobs.put(stored(blobs)._name("index", other.digest), pointer, TTL_S)
    assert await found(stored(blobs), other) is None, "copied to the other's name, it does not open"
    assert await found(stored(blobs), key_of()) is not None


async def test_the_store_reads_nothing(blobs: MemoryBlobs) -> None:
    await stored(blobs).put(key_of(), received())
    for name, (value, _) in blobs.values.items():
        for text in (b"Robinson", b"acme", key_of().digest, received().digest, b"right-key"):
            assert text not in value
            assert text.hex() not in name
    assert await found(stored(blobs, b"another deployment's"), key_of()) is None


@settings(deadline=None)
@given(st.binary(max_size=80) | st.integers(0, 79))
async def test_a_value_that_was_changed_is_a_miss(change: bytes | int) -> None:
    blobs = MemoryBlobs()
    await stored(blobs).put(key_of(), received())
    for name, (value, ends_s) in list(blobs.values.items()):
        if isinstance(change, bytes):
            changed = change
        else:
            at = change % len(value)
            changed = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        blobs.values[name] = (changed, ends_s)
        if ":seen:" in name:
            assert await stored(blobs).seen_ago_s(received().digest) is None
        else:
            assert await found(stored(blobs), key_of()) is None
        blobs.values[name] = (value, ends_s)
    assert await found(stored(blobs), key_of()) is not None


@pytest.mark.parametrize(
    "text",
    [b"[", b"{}", b"[" + b" " * MAX_LIST_BYTES + b"]", b'[{"name":"other"}]'],
    ids=["cut", "no list", "long", "x"],
)
async def test_a_body_that_is_sealed_and_wrong_is_a_miss(blobs: MemoryBlobs, text: bytes) -> None:
    lists = stored(blobs)
    await lists.put(key_of(), received())
    digest = received().digest
    body = lists._sealed(zlib.compress(text), b"tool-list|" + digest)
    await blobs.put(lists._name("list", digest), body, TTL_S)
    assert await found(lists, key_of()) is None


async def test_a_changed_catalog_is_a_miss(blobs: MemoryBlobs) -> None:
    """The list would be read in another way than the digest says."""
    await stored(blobs).put(key_of(), received())
    vendor = msgspec.structs.replace(ACME, tools={"acme_list": ToolOverride(read_only=True)})
    assert await found(stored(blobs), key_of(), vendor) is None


async def test_a_body_lives_longer_than_its_pointers(blobs: MemoryBlobs) -> None:
    await stored(blobs).put(key_of(), received())
    blobs.now_s += TTL_S - 1
    await stored(blobs).put(key_of(2), received())
    blobs.now_s += TTL_S - 1
    assert await found(stored(blobs), key_of(2)) is not None
    assert await found(stored(blobs), key_of()) is None
    assert await stored(blobs).seen_ago_s(received().digest) == TTL_S - 1


async def test_an_organization_stores_so_many_new_bytes_in_an_hour(
    blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_lists, "LEAST_BYTES", 0)
    lists = stored(blobs)
    await lists.put(key_of(), received())
    [body] = blobs.of_kind("list").values()
    monkeypatch.setattr(stored_lists, "BODY_BYTES_PER_HOUR", 2 * len(body) + 20)
    for number in range(5):
        await lists.put(key_of(), received([TOOLS[0] | {"title": str(number)}]))
    assert len(blobs.of_kind("list")) == 2, "the others are fetched by each process for itself"
    await lists.put(key_of(), received())
    await lists.put(key_of(2), received([TOOLS[0] | {"title": "other"}]))
    assert len(blobs.of_kind("list")) == 3, "a list counts once an hour, and another organization has a budget too"
    blobs.now_s += HOUR_S
    await lists.put(key_of(), received([TOOLS[0] | {"title": "later"}]))
    assert await found(lists, key_of()) is not None


async def test_the_first_renewal_of_an_hour_counts_as_a_new_list(
    blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an organization could keep what it stored in all hours before."""
    monkeypatch.setattr(stored_lists, "BODY_BYTES_PER_HOUR", 3 * stored_lists.LEAST_BYTES)
    lists, many = stored(blobs), [received([TOOLS[0] | {"title": str(number)}]) for number in range(24)]
    for hour in range(8):
        for each in (*many[3 * hour : 3 * hour + 3], *many[: 3 * hour + 3]):
            await lists.put(key_of(), each)
        held = [name for name in blobs.of_kind("list") if await blobs.size(name)]
        assert 3 <= len(held) <= 9, "a body lives for two hours"
        assert await found(lists, key_of()) is not None, "renewed again, a list costs nothing"
        blobs.now_s += HOUR_S


async def test_an_organization_pays_for_a_list_that_another_one_stored(
    blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = stored(blobs)
    await lists.put(key_of(), received())
    [body] = blobs.of_kind("list").values()
    monkeypatch.setattr(stored_lists, "LEAST_BYTES", 0)
    monkeypatch.setattr(stored_lists, "BODY_BYTES_PER_HOUR", len(body))
    for credential in (1, 2, 3):
        await lists.put(key_of(2, credential), received())
    assert len(blobs.of_kind("index")) == 4, "once for all of its credentials"
    await lists.put(key_of(2), received([TOOLS[0] | {"title": "more"}]))
    assert len(blobs.of_kind("list")) == 1


async def test_a_list_that_is_too_large_to_be_stored_costs_nothing(
    blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, large = stored(blobs), received([TOOLS[0] | {"title": str(uuid.uuid4())}])
    blobs.max_value_bytes = 100
    for _ in range(3):
        await lists.put(key_of(), large)
    assert blobs.values == {}, "no pointer leads to it"
    blobs.max_value_bytes = 1_000
    monkeypatch.setattr(stored_lists, "LEAST_BYTES", 0)
    monkeypatch.setattr(stored_lists, "BODY_BYTES_PER_HOUR", 1_000)
    await lists.put(key_of(), received())
    assert len(blobs.of_kind("list")) == 1


async def test_one_process_leads_until_its_time_is_over(blobs: MemoryBlobs) -> None:
    assert [await stored(blobs).claim(key_of(), 10) for _ in range(3)] == [True, False, False]
    assert await stored(blobs).claim(key_of(2), 10)
    blobs.now_s += 10
    assert [await stored(blobs).claim(key_of(), 10) for _ in range(2)] == [True, False]


async def test_a_store_that_is_away_has_nothing_and_keeps_no_process_from_asking(blobs: MemoryBlobs) -> None:
    await stored(blobs).put(key_of(), received())
    blobs.is_away = True
    lists = stored(blobs)
    assert await found(lists, key_of()) is None
    assert await lists.seen_ago_s(received().digest) is None
    assert await lists.claim(key_of(), 10)
    await lists.put(key_of(), received())
    blobs.is_away = False
    assert await found(lists, key_of()) is not None


async def test_a_long_list_is_packed_beside_the_loop(blobs: MemoryBlobs) -> None:
    tools = [{"name": f"acme_{n}", "description": "x" * 500, "inputSchema": {}} for n in range(1_000)]
    await stored(blobs).put(key_of(), received(tools))
    again = await found(stored(blobs), key_of())
    assert again is not None
    assert list(map(bytes, again.tools)) == [bytes(Raw(each)) for each in received(tools).tools]
    assert len(*blobs.of_kind("list").values()) < received(tools).size_bytes / 10
