"""A vendor's list as received and as parsed: its digest, the memory that it counts with, and its definitions."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.tool_config import ToolConfig
from gateway.catalog.vendor import ToolOverride, Vendor
from proxy.protocol import replies
from proxy.vendors.tool_list import ReceivedList, ToolList, definitions_of, read_list

ACME = Vendor(slug="acme", name="Acme", url="https://acme.example/mcp")


def received(tools: list[Any], vendor: Vendor = ACME) -> ReceivedList:
    raw = msgspec.json.encode({"tools": tools})
    return ReceivedList.of(vendor, replies.raw_tools_page(raw).tools, len(raw))


def read(tools: list[Any]) -> ToolList:
    return read_list(ACME, received(tools), ToolConfig())[0]


def tools(count: int, prefix: str = "", words: int = 3) -> list[dict[str, Any]]:
    text = "Does one thing to the objects of a site, and says what it did. " * words
    schema = {"type": "object", "properties": {f"argument_{n}": {"type": "string"} for n in range(words)}}
    return [{"name": f"{prefix}tool_{n}", "description": text, "inputSchema": schema} for n in range(count)]


@pytest.mark.parametrize("count", [24, 1_200])
@pytest.mark.parametrize("prefix", ["", "acme_"], ids=["renamed", "as sent"])
def test_a_list_counts_with_about_the_memory_that_it_takes(count: int, prefix: str) -> None:
    read_list(ACME, received(tools(1)), ToolConfig())  # the first one fills tables that later ones share
    listed = received(tools(count, prefix))
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        content, _ = read_list(ACME, listed, ToolConfig())
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.6 < (used - before) / content.kept_bytes < 1.25


def test_a_text_that_is_shown_as_sent_is_kept_once() -> None:
    content = read(tools(1, "acme_"))
    assert content.definitions["acme_tool_0"] is content.encoded["acme_tool_0"]
    renamed = read(tools(1))
    assert renamed.definition("tool_0") == tools(1)[0]
    assert msgspec.json.decode(renamed.encoded["acme_tool_0"]) == {**tools(1)[0], "name": "acme_tool_0"}


def test_the_digest_is_of_the_list_and_of_what_its_reading_depends_on() -> None:
    same, other = received(tools(2)), received(tools(2, words=4))
    assert received(tools(2)).digest == same.digest != other.digest
    vendors = [
        msgspec.structs.replace(ACME, slug="acme-2"),
        msgspec.structs.replace(ACME, tool_prefix="a"),
        msgspec.structs.replace(ACME, tools={"tool_0": ToolOverride(read_only=True)}),
    ]
    assert len({same.digest, *(received(tools(2), vendor).digest for vendor in vendors)}) == 4
    renamed = msgspec.structs.replace(ACME, name="Other", timeout_seconds=5)
    assert received(tools(2), renamed).digest == same.digest


JSON = st.recursive(st.none() | st.booleans() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3))


@given(st.lists(JSON, max_size=4), st.lists(JSON, max_size=4))
def test_two_lists_have_one_digest_only_if_they_are_equal(one: list[Any], other: list[Any]) -> None:
    assert (received(one).digest == received(other).digest) == (one == other)


def test_the_definitions_are_those_that_the_vendor_sent() -> None:
    sent = [{**tools(1)[0], "description": "With a hidden \u200b character."}]
    assert definitions_of(received(sent)) == {"tool_0": sent[0]}
    assert read(sent).definition("tool_0")["description"] == "With a hidden  character."
