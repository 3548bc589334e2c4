"""Pure: may a caller use a vendor, may it call a tool. The same functions filter lists and refuse calls.

Spec: §4.5, §4.9 · D33, D34, D75-D77, D165
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orgs.allowed_items import AllowedItems, ItemLists, ItemType
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role

Allowlists = Mapping[tuple[str, str], frozenset[str]]


# A service client has the rights of this role, also in a call that it makes for a person.
AGENT_ROLE = Role.MEMBER


class ToolLimit(StrEnum):
    """The limit that refuses a tool."""

    ROLE = "role"  # the list of the role
    OWN = "own"  # the list of the service client
    READ_ONLY = "read_only"  # the service client's mode


@dataclass(frozen=True, slots=True)
class ItemLimit:
    """A limit of resources or prompts. `items` None: a list of tools closes them."""

    limit: ToolLimit
    items: AllowedItems | None

    @property
    def is_closed(self) -> bool:
        return self.items is None or not self.items.entries

    def allows(self, own: str) -> bool:
        return self.items is not None and self.items.allows(own)


def person_may_use_vendor(
    role: Role, granted_vendors: frozenset[str] | None, vendor: str, *, default_access_all: bool
) -> bool:
    """Owners and admins: always. Members: by server access or by the organization's default."""
    if role.at_least(Role.ADMIN) or default_access_all:
        return True
    return granted_vendors is not None and vendor in granted_vendors


def may_use_vendor(
    principal: Principal, vendor: str, *, default_access_all: bool, has_own_credential: bool = False
) -> bool:
    """A person: by role, server access or default. A service client: unless its list leaves the vendor out.

    A service client that acts for a person: what both may use.
    """
    # A service client's own credentials count as server access: an admin stored them for its use.
    if principal.kind is PrincipalKind.SERVICE:
        return has_own_credential or principal.granted_vendors is None or vendor in principal.granted_vendors
    agent = principal.agent
    if agent is not None and agent.vendors is not None and vendor not in agent.vendors:
        return False
    return person_may_use_vendor(
        principal.role, principal.granted_vendors, vendor, default_access_all=default_access_all
    )


def refusing_limit(
    principal: Principal, vendor: str, tool: str, allowlists: Allowlists, *, is_read_only: bool
) -> ToolLimit | None:
    """None if the principal may call the tool. `is_read_only`: whether the tool is marked so. Spec: D77, D165"""
    if not role_may_call_tool(principal.role, vendor, tool, allowlists):
        return ToolLimit.ROLE
    own = own_tools(principal, vendor)
    if own is not None and tool not in own:
        return ToolLimit.OWN
    if principal.agent is not None and not role_may_call_tool(AGENT_ROLE, vendor, tool, allowlists):
        return ToolLimit.OWN
    return ToolLimit.READ_ONLY if principal.is_read_only and not is_read_only else None


def item_limits(
    principal: Principal, vendor: str, kind: ItemType, allowlists: Allowlists, item_lists: ItemLists
) -> tuple[ItemLimit, ...]:
    """The lists that limit the vendor's resources, or its prompts; each counts. Equal ones allow equal entries.

    A list of tools without a list of this kind closes them all. docs/decisions/0115
    """
    of_role = item_lists.get((vendor, principal.role.value, kind))
    found = [_limit_of_items(ToolLimit.ROLE, of_role, allowed_tools(principal.role, vendor, allowlists))]
    own = None if principal.own_item_lists is None else principal.own_item_lists.get((vendor, kind))
    found.append(_limit_of_items(ToolLimit.OWN, own, own_tools(principal, vendor)))
    if principal.agent is not None:
        of_agents = item_lists.get((vendor, AGENT_ROLE.value, kind))
        found.append(_limit_of_items(ToolLimit.OWN, of_agents, allowed_tools(AGENT_ROLE, vendor, allowlists)))
    return tuple(each for each in found if each is not None)


def _limit_of_items(limit: ToolLimit, items: AllowedItems | None, tools: frozenset[str] | None) -> ItemLimit | None:
    return None if items is None and tools is None else ItemLimit(limit, items)


def tool_lists(principal: Principal, vendor: str, allowlists: Allowlists) -> tuple[frozenset[str] | None, ...]:
    """Each list of tools that counts for the principal, in a fixed order; None in place of one that there is not."""
    of_agents = allowed_tools(AGENT_ROLE, vendor, allowlists) if principal.agent is not None else None
    return allowed_tools(principal.role, vendor, allowlists), own_tools(principal, vendor), of_agents


def limits_tools(principal: Principal, vendor: str, allowlists: Allowlists) -> bool:
    """Whether there may be tools of the vendor that the principal may not call."""
    return principal.is_read_only or any(each is not None for each in tool_lists(principal, vendor, allowlists))


def role_may_call_tool(role: Role, vendor: str, tool: str, allowlists: Allowlists) -> bool:
    """Without a list for (vendor, role): every tool. With one: exactly the vendor's tool names on it."""
    # Exact match: names are case-sensitive. Spec: D77
    allowed = allowed_tools(role, vendor, allowlists)
    return allowed is None or tool in allowed


def allowed_tools(role: Role, vendor: str, allowlists: Allowlists) -> frozenset[str] | None:
    """None without a list: every tool."""
    return allowlists.get((vendor, role._value_))  # on the hot path: `value` is a Python call


def own_tools(principal: Principal, vendor: str) -> frozenset[str] | None:
    """The service client's own list. None without one: every tool."""
    return None if principal.own_allowlists is None else principal.own_allowlists.get(vendor)
