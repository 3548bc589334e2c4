"""The calls that a person or an agent may make, and why, by the rules that decide calls. Staff do not act as them.

Spec: §4.14 (1)-(2) · D33, D67, D77
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from credentials.selectors import connected_vendors
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import NotFound
from gateway.lib.ids import parse_id
from gateway.support.page import SupportPage
from gateway.web.search import typed_text
from oauth_ext.bearer import InvalidBearer
from oauth_ext.selectors import service_client
from orgs.models import Organization, ServerAccess
from orgs.selectors import member, server_access
from proxy.caller_rows import principal_of
from proxy.control_plane.assumed_callers import identity_of_client, identity_of_person
from proxy.control_plane.explanation import explain_access
from proxy.control_plane.tool_rights import VendorTools, tools_of
from proxy.protocol.tool_names import exposed_name

TOOL_MAX_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class VendorRights:
    """`allowed`: exposed tool names, sorted; `offered`: how many tools the vendor listed."""

    vendor: Vendor
    refusal: str
    offered: int
    allowed: list[str]


class SeeAsPage(SupportPage):
    """GET /admin/support/organizations/:orgId/see-as/:who?tool=. `who`: a person's id, or an agent's id or name."""

    def get(self, request: HttpRequest, org_id: UUID, who: str) -> HttpResponse:
        organization = self.read_organization(org_id)
        subject, name = subject_of(organization, who)
        tool = typed_text(request, "tool")[:TOOL_MAX_CHARACTERS]
        explanation = explain_access(subject, tool, org_id=organization.id, shows_count=False) if tool else None
        context = {"organization": organization, "who": who, "name": name, "tool": tool, "explanation": explanation}
        context["direct"] = list(direct_access(organization, subject))
        return self.page("support/see_as.html", f"See as {name}", {**context, **_rights(organization, who)})


def direct_access(organization: Organization, subject: str) -> Iterable[ServerAccess]:
    """The person's own rows in force, and those of the person's teams; an agent has none."""
    key = parse_id(subject)
    if key is None:
        return []
    own = Q(membership__user_id=key) | Q(team__team_memberships__membership__user_id=key)
    return server_access(organization).filter(own).select_related("team", "membership__user").distinct()


def subject_of(organization: Organization, who: str) -> tuple[str, str]:
    """(the subject of calls, the name). Raises: NotFound, also for one of another organization."""
    try:
        found = member(organization, who)
    except NotFound:
        client = service_client(organization, who)
        return client.subject, client.name
    return str(found.user_id), found.user.name


def _rights(organization: Organization, who: str) -> dict[str, Any]:
    """`rights` of each connected vendor, or `refused`: why this caller gets no token at all."""
    try:
        identity = identity_of_client(service_client(organization, who))
    except NotFound:
        identity = identity_of_person(UUID(who), organization.id)
    try:
        principal = principal_of(identity)
    except InvalidBearer as fault:
        return {"rights": [], "refused": fault.reason}
    catalog = registry.load()
    vendors = [vendor for slug in connected_vendors(organization) if (vendor := catalog.get(slug))]
    tools = tools_of(principal, organization, vendors)
    return {"rights": [_of_vendor(vendor, tools[vendor.slug]) for vendor in vendors], "refused": ""}


def _of_vendor(vendor: Vendor, tools: VendorTools) -> VendorRights:
    allowed = sorted(exposed_name(vendor.tool_prefix, name) for name in tools.allowed)
    return VendorRights(vendor, tools.refusal, len(tools.offered), allowed)
