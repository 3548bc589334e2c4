"""search_tools and describe_tool: what tools/list would show a caller, found by words. docs/decisions/0103

The rules are those of tools/list. A tool that the caller may not call is as one that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from gateway.catalog.vendor import Vendor
from proxy.cache.list_bodies import ListPart
from proxy.calls.list_tools import INTERNAL_ERROR, is_shown, log_internal_error, may_list, usable_lists
from proxy.protocol import tool_search
from proxy.protocol.compact_tools import Search
from proxy.protocol.json_schema import as_dict, as_list
from proxy.protocol.tool_definitions import description_of
from proxy.protocol.tool_search import SearchIndex
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler

SUMMARY_CHARACTERS = 200  # of a description


@dataclass(frozen=True, slots=True)
class FoundTools:
    """`tools`: the best first. `unavailable`: by slug, why a vendor's tools are missing or outdated."""

    tools: list[dict[str, Any]]
    unavailable: dict[str, str]


async def search_tools(context: RequestContext, asked: Search) -> FoundTools:
    """`asked.vendor` may name a vendor that the caller cannot use: then nothing is found."""
    vendors = _asked_vendors(context, asked.vendor)
    lists, unavailable = await usable_lists(context, vendors) if vendors is None or vendors else ([], {})
    indexes: list[SearchIndex] = []
    for vendor, part in list(lists):
        try:
            indexes.append(await _index(context, vendor, part))
        except Exception:
            # As in tools/list: an internal error with one vendor must not hide the tools of the others.
            log_internal_error(context, vendor)
            lists.remove((vendor, part))
            unavailable[vendor.slug] = INTERNAL_ERROR
    work = partial(_best, context, lists, indexes, asked)
    # A vendor's list may give every tool every word: a search then reads all of them.
    size_bytes = sum(part.content.received_bytes for _, part in lists)
    tools = await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, size_bytes)
    return FoundTools(tools, unavailable)


async def describe_tool(context: RequestContext, name: str) -> bytes | None:
    """The definition, as tools/list has it. None: the caller has no such tool."""
    owner = context.caller.catalog.owner_of(name)
    if owner is None or not may_list(context, owner):
        return None
    lists, _ = await usable_lists(context, [owner])
    for vendor, part in lists:
        tool = part.content.tools.by_exposed(name)
        if tool is not None and is_shown(context, vendor, part, tool):
            return part.content.encoded[tool.exposed_name]
    return None


def _asked_vendors(context: RequestContext, slug: str | None) -> Sequence[Vendor] | None:
    """None: all."""
    if slug is None:
        return None
    vendor = context.caller.catalog.get(slug)
    return [] if vendor is None else [vendor]


async def _index(context: RequestContext, vendor: Vendor, part: ListPart) -> SearchIndex:
    """Built beside the event loop where the list is large."""
    kept, owner = context.runtime.search_indexes, context.caller.principal.org_id
    found = kept.get(vendor, part.content)
    if found is None:
        work = partial(_build, vendor, part)
        found = await fair_scheduler.run_small_inline(owner, work, part.content.received_bytes)
        kept.put(vendor, part.content, found, owner=owner)
    return found


def _build(vendor: Vendor, part: ListPart) -> SearchIndex:
    return tool_search.index_of(map(msgspec.json.decode, part.content.encoded.values()), vendor.name)


def _best(
    context: RequestContext, lists: Sequence[tuple[Vendor, ListPart]], indexes: Sequence[SearchIndex], asked: Search
) -> list[dict[str, Any]]:
    """Thread-safe."""
    shown = (
        _summary(*lists[place], name)
        for place, name in tool_search.ranked(indexes, asked.query)
        if _is_shown(context, *lists[place], name)
    )
    return list(islice(shown, asked.limit))


def _is_shown(context: RequestContext, vendor: Vendor, part: ListPart, name: str) -> bool:
    tool = part.content.tools.by_exposed(name)
    return tool is not None and is_shown(context, vendor, part, tool)


def _summary(vendor: Vendor, part: ListPart, name: str) -> dict[str, Any]:
    definition = msgspec.json.decode(part.content.encoded[name])
    text = " ".join(description_of(definition).split())
    # Vendors' schemas are passed on as they are: any member may be of any type.
    required = as_list(as_dict(definition.get("inputSchema")).get("required"))
    tool = part.content.tools.by_exposed(name)
    return {
        "name": name,
        "vendor": vendor.slug,
        "description": text if len(text) <= SUMMARY_CHARACTERS else f"{text[: SUMMARY_CHARACTERS - 1]}…",
        "requiredArguments": [each for each in required if isinstance(each, str)],
        "readOnly": tool is not None and part.content.policy(tool).read_only,
    }
