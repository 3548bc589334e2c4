"""Why a caller may or may not use a resource or prompt, without asking a vendor. docs/decisions/0115"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from orgs import selectors
from orgs.access_rules import ItemLimit, ToolLimit, refusing_limit
from orgs.allowed_items import ItemType
from orgs.models import Organization
from orgs.principal import Principal
from proxy.caller import OrganizationAccess
from proxy.calls import decide
from proxy.calls.decide import AppTool, Item
from proxy.protocol import item_addresses, item_results


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """`limit`: whose limit refuses; `is_tools`: whether a tool has to be allowed, whose app it is."""

    passed: bool
    detail: str
    remedy: str = ""
    limit: ToolLimit | None = None
    is_tools: bool = False


def vendor_of_item(catalog: Catalog, kind: ItemType, name: str) -> Vendor | None:
    """By the name at the unified endpoint. None where none is named."""
    if kind is ItemType.PROMPTS:
        return catalog.owner_of(name)
    named = item_addresses.split(name, catalog.by_slug)
    return None if named is None else catalog.by_slug[named[0]]


def explained_item(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, kind: ItemType, name: str
) -> ItemVerdict:
    """`name`: as at the unified endpoint."""
    words = {"who": principal.label, "vendor": vendor.name, "item": name}
    owns = _own_names(vendor, kind, name)
    items = [Item(kind, own, _tools_of(principal, vendor, own) if kind is ItemType.RESOURCES else ()) for own in owns]
    refusals = [decide.may_use_item(principal, organization, vendor, item) for item in items]
    if items[0].tools:
        return _explained_app(principal, organization, vendor, items[0], is_refused=refusals[0] is not None)
    limits = decide.item_limits(principal, organization, vendor, kind)
    if None in refusals:
        detail = _LISTED[kind] if limits else _ALL[kind]
        return ItemVerdict(True, sentence(detail, **words))
    # One that refuses both spellings says more.
    refusing = next((each for each in limits if not any(map(each.allows, owns))), None) or next(
        each for each in limits if not each.allows(owns[0])
    )
    return _refused(refusing, kind, organization, words)


def _refused(
    refusing: ItemLimit, kind: ItemType, organization: OrganizationAccess, words: dict[str, str]
) -> ItemVerdict:
    remedy = sentence("An owner of %(org)s can allow it.", org=organization.name)
    detail = _CLOSED[kind] if refusing.items is None else _UNLISTED[kind]
    return ItemVerdict(False, sentence(detail, **words), remedy, refusing.limit)


def _explained_app(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, item: Item, *, is_refused: bool
) -> ItemVerdict:
    tools = ", ".join(tool.name for tool in item.tools)
    if not is_refused:
        return ItemVerdict(True, sentence("It’s the app of a tool the caller can call (%(tools)s).", tools=tools))
    detail = sentence("It’s the app of a tool that %(who)s can’t call (%(tools)s).", who=principal.label, tools=tools)
    first = item.tools[0]
    limit = refusing_limit(principal, vendor.slug, first.name, organization.allowlists, is_read_only=first.is_read_only)
    remedy = sentence("An owner of %(org)s can allow it.", org=organization.name)
    return ItemVerdict(False, detail, remedy, limit, is_tools=True)


def _own_names(vendor: Vendor, kind: ItemType, name: str) -> Sequence[str]:
    if kind is ItemType.RESOURCES:
        named = item_addresses.split(name, (vendor.slug,))
        return [name if named is None else named[1]]
    # Only the vendor knows whether the prefix is part of its own name, so both spellings are checked.
    return sorted({name, name.removeprefix(f"{vendor.tool_prefix}_")})


def _tools_of(principal: Principal, vendor: Vendor, address: str) -> tuple[AppTool, ...]:
    """The tools that the address is the app of, as the organization last saw the vendor's tools."""
    if not item_addresses.is_app(address):
        return ()
    organization = required_row(Organization.objects.filter(pk=principal.org_id))
    known, key = selectors.offered_definitions(organization, vendor.slug), item_addresses.app_key(address)
    found = []
    for name, text in sorted(known.items()):
        definition = json.loads(text or "{}")
        if key in map(item_addresses.app_key, item_results.apps_of(definition)):
            is_read_only = bool(settings.VENDOR_TOOL_CONFIG.policy(vendor, name, definition).read_only)
            found.append(AppTool(name, is_read_only))
    return tuple(found)


_ALL = {
    ItemType.RESOURCES: sentence("No list limits the resources of %(vendor)s for this caller."),
    ItemType.PROMPTS: sentence("No list limits the prompts of %(vendor)s for this caller."),
}
_LISTED = {
    ItemType.RESOURCES: sentence("The resource is on every list that counts for this caller."),
    ItemType.PROMPTS: sentence("The prompt is on every list that counts for this caller."),
}
_UNLISTED = {
    ItemType.RESOURCES: sentence("%(item)s isn’t on the list of resources that %(who)s can use."),
    ItemType.PROMPTS: sentence("%(item)s isn’t on the list of prompts that %(who)s can use."),
}
_CLOSED = {
    ItemType.RESOURCES: sentence(
        "%(who)s can call only some tools of %(vendor)s, and has no list of its resources: they are closed."
    ),
    ItemType.PROMPTS: sentence(
        "%(who)s can call only some tools of %(vendor)s, and has no list of its prompts: they are closed."
    ),
}
