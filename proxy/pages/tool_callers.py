"""The list of those who may call a tool, with the reasons in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext

from gateway.catalog.vendor import Vendor
from gateway.lib.translated import translated
from gateway.web.access_end import shown_end
from gateway.web.paging import page_of
from orgs.models import Organization
from orgs.server_access_reasons import AccessReason
from proxy.control_plane.offered_tool import OfferedTool
from proxy.control_plane.tool_rights import AgentCaller, Allowance, PersonCaller, callers_of
from proxy.outcomes import Denied

CALLERS_ON_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class ShownCaller:
    """`page_id`: in the address of its own page. `access`: why it may use the vendor; `tools`: why it may call it."""

    is_agent: bool
    page_id: str
    name: str
    note: str
    access: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownCallers:
    """`page`: of the list; `rows`: its callers. The numbers are of those who may, and of all."""

    page: Any
    rows: list[ShownCaller]
    people: int
    agents: int
    all_people: int
    all_agents: int
    # Why the other people may not call it, by user id.
    refused: Mapping[UUID, Denied]


def shown_callers(
    request: HttpRequest,
    organization: Organization,
    connected_vendors: Sequence[str],
    vendor: Vendor,
    tool: OfferedTool,
) -> ShownCallers:
    """The page of the list that `?page=` asks for."""
    found = callers_of(organization, connected_vendors, vendor, tool.name, tool.definition)
    page: Any = page_of(request, found.listed, size=CALLERS_ON_A_PAGE)
    rows = [_person(each) if isinstance(each, PersonCaller) else _agent(each, vendor.slug) for each in page]
    numbers = (len(found.people), len(found.agents), found.all_people, found.all_agents)
    return ShownCallers(page, rows, *numbers, found.refused)


def _person(each: PersonCaller) -> ShownCaller:
    user, role = each.membership.user, each.membership.role
    access = tuple(_until(_reason(reason), reason.expires_at) for reason in each.reasons)
    if each.allowance.by_role_list:
        tools = gettext("allowed tools of the role %(role)s") % {"role": translated(role)}
    else:
        tools = gettext("every tool is allowed for the role %(role)s") % {"role": translated(role)}
    return ShownCaller(False, str(user.pk), user.name, f"{user.email}, {translated(role)}", access, (tools,))


def _reason(reason: AccessReason) -> str:
    match reason.source:
        case "role":
            return gettext("as admin or owner")
        case "default":
            return gettext("by default")
        case "direct":
            return gettext("given directly")
        case "team":
            return gettext("through team %(team)s") % {"team": reason.team_name}


def _agent(each: AgentCaller, slug: str) -> ShownCaller:
    access = []
    if each.has_own_credential:
        access.append(gettext("own credentials"))
    if each.principal.granted_vendors is None:
        access.append(gettext("can use every vendor"))
    elif slug in each.principal.granted_vendors:
        ends = next((row.expires_at for row in each.row.listed_vendors if row.vendor == slug), None)
        access.append(_until(gettext("directly"), ends))
    return ShownCaller(
        True, each.row.client_id, each.row.name, each.row.client_id, tuple(access), _limits(each.allowance)
    )


def _limits(allowance: Allowance) -> tuple[str, ...]:
    """An agent has the rights of the role member, and limits of its own."""
    found = [
        text
        for text, applies in (
            (gettext("allowed tools of the role %(role)s") % {"role": gettext("member")}, allowance.by_role_list),
            (gettext("the agent’s own list"), allowance.by_own_list),
            (gettext("read-only agent, read-only tool"), allowance.is_read_only),
        )
        if applies
    ]
    return tuple(found) or (gettext("all tools allowed (default)"),)


def _until(text: str, ends: datetime | None) -> str:
    if ends is None:
        return text
    return gettext("%(reason)s until %(date)s") % {"reason": text, "date": shown_end(ends)}
