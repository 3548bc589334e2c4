"""The callers of one tool, and the tools of one caller, by the rules that decide calls. Nothing is counted or recorded.

Spec: §4.14 (1)-(2) · D33, D34, D67, D77, D165, D173
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from credentials.credential_scope import CredentialScope
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import Forbidden
from gateway.lib.rows import grouped
from oauth_ext.bearer import InvalidBearer
from oauth_ext.bearer_rows import ClientRow, client_rows
from orgs import selectors
from orgs.access_rules import allowed_tools, own_tools
from orgs.models import Membership, Organization
from orgs.principal import Principal
from orgs.server_access_reasons import AccessReason, effective_server_access_of
from proxy.caller import OrganizationAccess
from proxy.caller_rows import organization_access
from proxy.calls.decide import applicable_credential, may_call, may_call_tool, refused_vendor
from proxy.control_plane.assumed_callers import principal_of_client_row, principal_of_member
from proxy.outcomes import Denied


@dataclass(frozen=True, slots=True)
class Allowance:
    """Why a caller may call the tool. A limit that is False does not apply."""

    by_role_list: bool
    by_own_list: bool
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class PersonCaller:
    membership: Membership
    reasons: tuple[AccessReason, ...]
    allowance: Allowance


@dataclass(frozen=True, slots=True)
class AgentCaller:
    """`principal.granted_vendors` says whether a list restricts it."""

    row: ClientRow
    principal: Principal
    has_own_credential: bool
    allowance: Allowance


@dataclass(frozen=True, slots=True)
class ToolCallers:
    """Those who may call a tool. The numbers are of active people and of agents that have not expired."""

    people: list[PersonCaller]
    agents: list[AgentCaller]
    all_people: int
    all_agents: int
    # Why the other people may not call it, by user id.
    refused: Mapping[uuid.UUID, Denied]

    @property
    def listed(self) -> list[PersonCaller | AgentCaller]:
        return [*self.people, *self.agents]


def callers_of(
    organization: Organization,
    connected_vendors: Sequence[str],
    vendor: Vendor,
    tool: str,
    definition: Mapping[str, Any],
) -> ToolCallers:
    """`tool` and `definition` are the vendor's own. The number of queries is fixed."""
    rights = _rights_in(organization)
    is_read_only = _is_read_only(vendor, tool, definition)
    members = list(selectors.members(organization).select_related("organization", "user").filter(user__is_active=True))
    in_teams = selectors.in_teams(members)
    reasons = effective_server_access_of(members, connected_vendors, vendor=vendor.slug, in_teams=in_teams)
    teams = grouped((each.membership_id, each.team_id) for each in in_teams)
    people, refused = [], {}
    for member in members:
        principal = principal_of_member(member, reasons[member.pk], teams.get(member.pk, ()))
        denied = may_call(principal, rights, vendor, tool, is_read_only=is_read_only)
        if denied is not None:
            refused[member.user_id] = denied
        else:
            people.append(PersonCaller(member, tuple(reasons[member.pk]), _allowance(principal, rights, vendor)))
    rows = client_rows(organization, vendor=vendor.slug)
    agents = []
    for row in rows:
        principal = principal_of_client_row(row)
        if may_call(principal, rights, vendor, tool, is_read_only=is_read_only) is None:
            credential = applicable_credential(principal, rights, vendor)
            is_own = credential is not None and credential.scope is CredentialScope.SERVICE_CLIENT
            agents.append(AgentCaller(row, principal, is_own, _allowance(principal, rights, vendor)))
    return ToolCallers(people, agents, len(members), len(rows), refused)


@dataclass(frozen=True, slots=True)
class VendorTools:
    """The tools of one vendor for one caller, by the vendor's names. `refusal`: why it may use none; "" if it may."""

    offered: Collection[str]
    allowed: frozenset[str]
    refusal: str


def tools_of(principal: Principal, organization: Organization, vendors: Iterable[Vendor]) -> dict[str, VendorTools]:
    """By slug. Raises: Forbidden as `_rights_in`."""
    rights, offered = _rights_in(organization), selectors.offered_tools(organization)
    # Only a read-only agent's verdict depends on the definitions.
    texts = selectors.offered_definitions_by_vendor(organization) if principal.is_read_only else {}
    found = {}
    for vendor in vendors:
        names = offered.get(vendor.slug, frozenset())
        denied = refused_vendor(principal, rights, vendor)
        known = texts.get(vendor.slug, {})
        allowed = (
            name
            for name in names
            if denied is None and _may_call_offered(principal, rights, vendor, name, known.get(name, ""))
        )
        found[vendor.slug] = VendorTools(names, frozenset(allowed), "" if denied is None else denied.text)
    return found


def _may_call_offered(
    principal: Principal, rights: OrganizationAccess, vendor: Vendor, name: str, definition: str
) -> bool:
    """`definition`: as stored; "" without one, and where the verdict does not depend on it."""
    is_read_only = _is_read_only(vendor, name, json.loads(definition or "{}"))
    return may_call_tool(principal, rights, vendor, name, is_read_only=is_read_only) is None


def _rights_in(organization: Organization) -> OrganizationAccess:
    """Raises: Forbidden when it was deleted meanwhile."""
    try:
        return organization_access(organization.id)
    except InvalidBearer as fault:
        raise Forbidden(fault.reason) from fault


def _allowance(principal: Principal, rights: OrganizationAccess, vendor: Vendor) -> Allowance:
    return Allowance(
        by_role_list=allowed_tools(principal.role, vendor.slug, rights.allowlists) is not None,
        by_own_list=own_tools(principal, vendor.slug) is not None,
        is_read_only=principal.is_read_only,
    )


def _is_read_only(vendor: Vendor, tool: str, definition: Mapping[str, Any]) -> bool:
    return bool(settings.VENDOR_TOOL_CONFIG.policy(vendor, tool, definition).read_only)
