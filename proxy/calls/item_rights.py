"""The rights of one caller to the resources and prompts of one vendor, with the tools that apps belong to.

docs/decisions/0115
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.catalog.vendor import Vendor
from orgs.allowed_items import ItemType
from proxy.caller import Caller
from proxy.calls import decide
from proxy.calls.decide import AppTool, Item
from proxy.outcomes import Denial, Denied
from proxy.protocol import item_addresses
from proxy.protocol.item_kinds import Capability
from proxy.request_context import RequestContext
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem
from proxy.vendors.tool_list import ToolList

# Of a name and of an address: the lists that decide, and the capability.
TYPES = {Capability.RESOURCES: ItemType.RESOURCES, Capability.PROMPTS: ItemType.PROMPTS}


@dataclass(frozen=True, slots=True)
class ItemRights:
    """`tools`: the vendor's list, where rights depend on it. `knows_apps` False: it was not to be had. `of_apps`: the
    refusals found so far, by the key of the app's address."""

    caller: Caller
    vendor: Vendor
    tools: ToolList | None = None
    knows_apps: bool = True
    of_apps: dict[str, Denied | None] = field(default_factory=dict, repr=False, compare=False)

    def refused(self, kind: ItemType, own: str) -> Denied | None:
        """`own`: the vendor's own address or name."""
        if not self.knows_apps and kind is ItemType.RESOURCES and item_addresses.is_app(own):
            text = (
                f"The tools of {self.vendor.name} are not known at the moment, and so the callers of its apps are not."
            )
            return Denied(Denial.ITEM_NOT_ALLOWED, text, self.vendor.slug)
        # An address has many spellings, and an app many tools.
        key = item_addresses.app_key(own) if kind is ItemType.RESOURCES and self.tools is not None else ""
        if key in self.of_apps:
            return self.of_apps[key]
        item = self.item(kind, own)
        found = decide.may_use_item(self.caller.principal, self.caller.organization, self.vendor, item)
        if item.tools:
            self.of_apps[key] = found
        return found

    def item(self, kind: ItemType, own: str) -> Item:
        """With the tools whose app it is, where rights depend on them."""
        return Item(kind, own, self._tools_of(own) if kind is ItemType.RESOURCES else ())

    def offers(self, kind: ItemType) -> bool:
        """Whether there may be something of this kind for the caller."""
        if decide.refused_kind(self.caller.principal, self.caller.organization, self.vendor, kind) is None:
            return True
        apps = self.tools.apps if self.tools is not None and kind is ItemType.RESOURCES else ()
        return any(self.refused(kind, address) is None for address in apps)

    def are_all_allowed(self, kind: ItemType) -> bool:
        """Whether no list has to be looked through."""
        if kind is ItemType.RESOURCES and (self.tools is not None or not self.knows_apps):
            return False
        return not decide.item_limits(self.caller.principal, self.caller.organization, self.vendor, kind)

    def template_count(self, kind: ItemType) -> int:
        """The templates that each address is compared with."""
        limits = decide.item_limits(self.caller.principal, self.caller.organization, self.vendor, kind)
        return sum(len(each.items.templates) for each in limits if each.items is not None)

    def _tools_of(self, address: str) -> tuple[AppTool, ...]:
        if self.tools is None:
            return ()
        policies = self.tools.policies
        return tuple(
            AppTool(name, policies[name].read_only) for name in self.tools.apps.get(item_addresses.app_key(address), ())
        )


def depend_on_tools(caller: Caller, vendor: Vendor) -> bool:
    return decide.limits_apps(caller.principal, caller.organization, vendor)


def may_offer(caller: Caller, vendor: Vendor, kind: ItemType) -> bool:
    """As `ItemRights.offers`, before the vendor's tools are known: False only where they cannot matter."""
    if decide.refused_kind(caller.principal, caller.organization, vendor, kind) is None:
        return True
    return kind is ItemType.RESOURCES and decide.may_call_some(caller.principal, caller.organization, vendor)


async def rights_at(
    context: RequestContext, vendor: Vendor, destination: Destination, *, deadline: float
) -> ItemRights:
    """To all of the vendor's resources and prompts. Without the vendor's tools, which matter, to none of its apps."""
    try:
        return await _with_tools(context, vendor, destination, deadline)
    except VendorProblem:
        return ItemRights(context.caller, vendor, knows_apps=False)


async def rights_to(
    context: RequestContext, vendor: Vendor, destination: Destination, own: str, *, deadline: float
) -> ItemRights:
    """To one resource: only an app's depend on tools. Raises: VendorProblem."""
    if not item_addresses.is_app(own):
        return ItemRights(context.caller, vendor)
    return await _with_tools(context, vendor, destination, deadline)


async def _with_tools(context: RequestContext, vendor: Vendor, destination: Destination, deadline: float) -> ItemRights:
    """Raises: VendorProblem, if tools matter and are not known."""
    if not depend_on_tools(context.caller, vendor):
        return ItemRights(context.caller, vendor)
    index = await context.runtime.directory.index(vendor, destination, deadline=deadline)
    return ItemRights(context.caller, vendor, index.content)
