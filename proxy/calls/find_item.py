"""Finds the vendor of a resource or prompt by the address or name that the caller used. docs/decisions/0104"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

from credentials.resolve import CredentialRef
from gateway.catalog.vendor import Vendor
from orgs.allowed_items import ItemType
from proxy.calls.decide import Item, refused_kind
from proxy.calls.find_tool import FIND_DEADLINE_S
from proxy.calls.item_rights import TYPES, ItemRights, depend_on_tools, rights_to
from proxy.calls.list_items import known_lists, offered
from proxy.calls.open_destination import renewed, usable_vendor
from proxy.outcomes import BadArguments, Denial, Denied, Failed, UnknownItem, VendorFault
from proxy.protocol import item_addresses
from proxy.protocol.item_kinds import Capability, ItemKind
from proxy.request_context import RequestContext
from proxy.vendors import fair_scheduler
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem
from proxy.vendors.item_list import ItemList

MAX_NAMED = 5  # candidates in an answer


@dataclass(frozen=True, slots=True)
class FoundItem:
    """A resource or prompt at a vendor that the caller may use. `own`: as the vendor has it; `is_bare`: the caller used
    the vendor's own address; `item`: as its rights are judged."""

    vendor: Vendor
    credential: CredentialRef
    destination: Destination
    item: Item
    declared: frozenset[str]
    is_bare: bool

    @property
    def own(self) -> str:
        return self.item.own


NotFound = Denied | UnknownItem | BadArguments | Failed


async def find_resource(context: RequestContext, address: str, asked: Vendor | None) -> FoundItem | NotFound:
    """Also for templates. A resource need not stand in the vendor's list: results of tools name others too."""
    if asked is not None:
        return await _at_vendor(context, asked, Capability.RESOURCES, address, address, is_bare=True)
    named = item_addresses.split(address, context.caller.catalog.by_slug)
    if named is not None:
        slug, own = named
        fault = item_addresses.fault_in(own)
        if fault:
            return BadArguments(f"The address cannot be used: {fault}.")
        vendor = context.caller.catalog.by_slug[slug]
        return await _at_vendor(context, vendor, Capability.RESOURCES, own, address, is_bare=False)
    owners = await _owners_of(context, address)
    if isinstance(owners, Failed):
        return owners
    if len(owners) == 1:
        return await _at_vendor(context, owners[0], Capability.RESOURCES, address, address, is_bare=True)
    if owners:
        names = ", ".join(item_addresses.exposed(vendor.slug, address) for vendor in owners[:MAX_NAMED])
        return BadArguments(f"Several vendors have this address. Use one of: {names}")
    return UnknownItem(address, is_address=True, is_offered=Capability.RESOURCES in await offered(context, None))


async def find_prompt(context: RequestContext, name: str, asked: Vendor | None) -> FoundItem | NotFound:
    """The prompt in the vendor's list; a new list is fetched for an unknown name."""
    # Never another vendor with a shorter prefix: the arguments are not meant for it. Spec: D164
    vendor = asked or context.caller.catalog.owner_of(name)
    if vendor is None:
        return UnknownItem(name, is_offered=Capability.PROMPTS in await offered(context, None))
    found = await _at_vendor(context, vendor, Capability.PROMPTS, name, name, is_bare=asked is not None)
    if not isinstance(found, FoundItem):
        return found
    deadline = asyncio.get_running_loop().time() + FIND_DEADLINE_S
    items, arguments = context.runtime.items, (ItemKind.PROMPT, found.vendor, found.destination)
    try:
        with context.timing.session:
            for fetch in (items.index, items.fresh_index):
                content = (await fetch(*arguments, deadline=deadline)).content
                known = (content.by_exposed if asked is None else content.by_own).get(name)
                if known is not None:
                    rights = ItemRights(context.caller, found.vendor)
                    refused = rights.refused(ItemType.PROMPTS, known.own)
                    return refused or replace(found, item=rights.item(ItemType.PROMPTS, known.own))
    except VendorProblem as problem:
        return _failed(found.vendor, found.credential, problem)
    return UnknownItem(name, found.vendor.slug)


async def _at_vendor(
    context: RequestContext, asked: Vendor, capability: Capability, own: str, name: str, *, is_bare: bool
) -> FoundItem | NotFound:
    """A prompt is judged by its name once that is known."""
    vendor = context.caller.catalog.get(asked.slug)  # as it is after admission
    if vendor is None:
        return Denied(Denial.UNKNOWN_VENDOR, "There are no credentials for this vendor.", asked.slug)
    with context.timing.auth:
        usable = usable_vendor(context.caller, vendor)
        denied = _refused_at_once(context, vendor, capability, own)
    if isinstance(usable, Denied):
        return usable
    if denied is not None:
        return denied
    if usable[0].refresh_at_s is not None:
        usable = await renewed(context, vendor, usable)
        if isinstance(usable, Denied):
            return usable
    credential, destination = usable
    deadline = asyncio.get_running_loop().time() + FIND_DEADLINE_S
    rights = ItemRights(context.caller, vendor)
    try:
        with context.timing.session:
            declared = await context.runtime.items.declared(destination, deadline=deadline)
            if capability is Capability.RESOURCES and capability in declared:
                rights = await rights_to(context, vendor, destination, own, deadline=deadline)
                denied = rights.refused(ItemType.RESOURCES, own)
    except VendorProblem as problem:
        return _failed(vendor, credential, problem)
    if denied is not None:
        return denied
    if capability not in declared:
        is_offered = not is_bare and capability in await offered(context, None)
        return UnknownItem(name, vendor.slug, capability is Capability.RESOURCES, is_offered)
    item = rights.item(TYPES[capability], own)
    return FoundItem(vendor, credential, destination, item, declared, is_bare)


def _refused_at_once(context: RequestContext, vendor: Vendor, capability: Capability, own: str) -> Denied | None:
    """The refusal that needs no word of the vendor."""
    caller = context.caller
    if capability is Capability.PROMPTS:
        return refused_kind(caller.principal, caller.organization, vendor, ItemType.PROMPTS)
    if item_addresses.is_app(own) and depend_on_tools(caller, vendor):
        return None
    return ItemRights(caller, vendor).refused(ItemType.RESOURCES, own)


def _failed(vendor: Vendor, credential: CredentialRef, problem: VendorProblem) -> Failed:
    return Failed(vendor.slug, problem.fault, problem.detail, problem.retry_after_s, credential)


async def _owners_of(context: RequestContext, address: str) -> list[Vendor] | Failed:
    """The vendors whose own address it is, and where the caller may use it. Nothing is said of others, not even that
    they have it. An entry of a list counts more than a template.

    While the list of one is not known none is the owner: an address must not change its meaning when a vendor fails.
    """
    (resources, failed), (templates, others) = await asyncio.gather(
        known_lists(context, ItemKind.RESOURCE), known_lists(context, ItemKind.TEMPLATE)
    )
    if failed or others:
        return [*failed, *others][0]
    unsure = _app_without_tools([rights for rights, _ in (*resources, *templates)], address)
    if unsure is not None:
        return unsure
    exact = {rights.vendor.slug: rights for rights, listed in (*resources, *templates) if address in listed.by_own}
    owners = _usable_owners(exact.values(), address)
    if owners:
        return owners
    work = partial(_fitting, templates, address)
    size_bytes = sum(len(listed.own_body) for _, listed in templates)
    found = await fair_scheduler.run_small_inline(context.caller.principal.org_id, work, size_bytes)
    return _usable_owners(found, address)


def _app_without_tools(rights: Iterable[ItemRights], address: str) -> Failed | None:
    """Of a vendor whose tools decide about its apps and are not known now, whether it has this one or not."""
    if not item_addresses.is_app(address):
        return None
    for each in rights:
        refused = None if each.knows_apps else each.refused(ItemType.RESOURCES, address)
        if refused is not None:
            return Failed(each.vendor.slug, VendorFault.UNAVAILABLE, refused.text)
    return None


def _usable_owners(owners: Collection[ItemRights], address: str) -> list[Vendor]:
    """Those where the caller may use it."""
    return [each.vendor for each in owners if each.refused(ItemType.RESOURCES, address) is None]


def _fitting(lists: Iterable[tuple[ItemRights, ItemList]], address: str) -> list[ItemRights]:
    """The rights at vendors with a template that fits; thread-safe."""
    return [
        rights for rights, listed in lists if any(item_addresses.fits(template, address) for template in listed.by_own)
    ]
