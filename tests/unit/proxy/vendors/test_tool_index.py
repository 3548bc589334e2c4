"""Kept lists of tools: an organization's never take the place of those of another that holds less."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from gateway.catalog.tool_config import ToolConfig
from proxy.protocol.tool_names import ExposedTools
from proxy.vendors import tool_index
from proxy.vendors.destination import PoolKey
from proxy.vendors.pool import SessionPool
from proxy.vendors.tool_index import ToolDirectory, ToolIndex
from proxy.vendors.transport import VendorTransport

GREEDY, MODEST, SMALL = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> ToolDirectory:
    """Room for ten lists and a thousand bytes."""
    monkeypatch.setattr(tool_index, "MAX_INDEXES", 10)
    monkeypatch.setattr(tool_index, "MAX_INDEX_BYTES", 1_000)
    pool = SessionPool(VendorTransport(allow_private=False), idle_s=60)  # nothing is fetched here
    return ToolDirectory(pool, ToolConfig(), ttl_s=60, max_pages=1)


def keep(directory: ToolDirectory, org: uuid.UUID, size_bytes: int) -> PoolKey:
    key = PoolKey.of(org, "acme", uuid.uuid4(), "https://vendor.example/mcp", {})
    index = ToolIndex(ExposedTools("acme", []), {}, {}, {}, 0.0, size_bytes)
    directory._indexes.put(key, index, owner=org, size_bytes=size_bytes)
    assert directory._indexes.size_bytes == sum(each.size_bytes for each in indexes(directory)) <= 1_000
    assert len(directory._indexes) <= 10
    return key


def indexes(directory: ToolDirectory) -> list[ToolIndex]:
    return [index for key in directory._indexes if (index := directory._indexes.peek(key)) is not None]


def kept(directory: ToolDirectory) -> Counter[uuid.UUID]:
    return Counter(key.org_id for key in directory._indexes)


def test_large_lists_of_one_organization_displace_its_own_only(directory: ToolDirectory) -> None:
    others = [keep(directory, MODEST, 100), keep(directory, MODEST, 100), keep(directory, SMALL, 10)]
    greedy = [keep(directory, GREEDY, 300) for _ in range(8)]
    assert list(directory._indexes) == [*others, *greedy[-2:]], "the newest of its own stay"


def test_many_lists_of_one_organization_displace_its_own_only(directory: ToolDirectory) -> None:
    others = [keep(directory, MODEST, 1), keep(directory, SMALL, 0)]
    greedy = [keep(directory, GREEDY, 0) for _ in range(50)]
    assert list(directory._indexes) == [*others, *greedy[-8:]]


def test_who_holds_most_gives_way_to_who_comes(directory: ToolDirectory) -> None:
    for _ in range(9):
        keep(directory, GREEDY, 110)
    keep(directory, SMALL, 250)
    assert kept(directory) == {GREEDY: 6, SMALL: 1}


def test_what_was_used_last_stays(directory: ToolDirectory) -> None:
    keys = [keep(directory, GREEDY, 400) for _ in range(2)]
    directory._indexes.get(keys[0])
    new = keep(directory, GREEDY, 400)
    assert set(directory._indexes) == {keys[0], new}


def test_one_list_that_is_larger_than_the_bound_is_not_kept(directory: ToolDirectory) -> None:
    small = keep(directory, SMALL, 10)
    keep(directory, GREEDY, 1_001)
    assert list(directory._indexes) == [small]
