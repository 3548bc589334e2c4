"""Lists of resources, templates and prompts, and what is offered beside tools; for all protocol versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.catalog.vendor import Vendor
from gateway.lib.sentences import plain
from proxy.calls.list_items import ListedItems, list_items, offered
from proxy.protocol.item_kinds import LISTS, Capability
from proxy.request_context import RequestContext

ONE_PAGE = "Unknown cursor: the list has one page"


async def capabilities(
    context: RequestContext, vendor: Vendor | None, *, tells_changes: bool, is_compact: bool
) -> dict[str, Any]:
    """The capabilities for this caller. `tells_changes`: a stream could tell it of changes. The short list of tools has
    none."""
    found = await offered(context, vendor)
    declared: dict[str, Any] = {"tools": {"listChanged": tells_changes and not is_compact}}
    declared |= {name: {"listChanged": tells_changes} for name in ("prompts", "resources") if name in found}
    if tells_changes and Capability.UPDATES in found and "resources" in declared:
        declared["resources"]["subscribe"] = True
    return {**declared, "completions": {}} if "completions" in found else declared


async def listed(context: RequestContext, vendor: Vendor | None, method: str) -> ListedItems:
    return await list_items(context, LISTS[method], vendor)


def members(method: str, found: ListedItems) -> list[bytes]:
    """The list as a member of a result, in parts."""
    parts: list[bytes] = []
    for body in found.bodies:
        parts += [b",", body]
    return [b'"%b":[' % LISTS[method].member.encode(), *parts[1:], b"]"]


def meta_of(unavailable: Mapping[str, str]) -> dict[str, Any]:
    """The result of a list has no member of its own for the reasons why vendors are missing. Also for `tools/list`."""
    return {"gateway/unavailable": unavailable} if unavailable else {}


def encoded(meta: dict[str, Any]) -> bytes:
    return msgspec.json.encode(meta, enc_hook=plain)
