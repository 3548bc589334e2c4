"""One tool as the organization last saw it. No vendor is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from credentials.selectors import credential_summaries
from gateway.catalog.vendor import Vendor
from orgs import selectors
from orgs.models import Membership
from orgs.roles import Role
from orgs.services.known_tools import GENERAL_LIST
from proxy.control_plane.tool_diff import VisibleText, hints, visible
from proxy.credential_lists import list_scopes
from proxy.protocol.tool_definitions import title_of
from proxy.protocol.tool_names import ExposedTools


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """`name` is the vendor's, `exposed_name` that of tools/list. The vendor says whether it is read-only."""

    name: str
    exposed_name: str
    title: str
    description: VisibleText
    hints: list[str]
    definition: Mapping[str, Any]
    schema: VisibleText

    @property
    def is_read_only(self) -> bool:
        return "read-only" in self.hints


def offered_tool(viewer: Membership, vendor: Vendor, name: str) -> OfferedTool | None:
    """`name` is the vendor's, or the one in tools/list. None for a tool that no list of the viewer offers."""
    organization = viewer.organization
    offered = selectors.known_tools(organization, vendor.slug).exclude(seen_sha256=b"")
    if not viewer.has_role(Role.ADMIN):
        offered = offered.filter(credential_scope__in=_own_lists(viewer, vendor))
    names = ExposedTools(vendor.tool_prefix, offered.values_list("tool", flat=True))
    tool = next((each for each in names.tools if each.vendor_name == name), None) or names.by_exposed(name)
    if tool is None:
        return None
    # The general list comes before those of teams and agents.
    rows = offered.filter(tool=tool.vendor_name).order_by("credential_scope")
    stored = rows.values_list("seen_definition", flat=True)[0]
    definition: dict[str, Any] = json.loads(stored) if stored else {"name": tool.vendor_name}
    text = definition.get("description")
    return OfferedTool(
        name=tool.vendor_name,
        exposed_name=tool.exposed_name,
        title=visible(title_of(definition) or "").text,
        description=visible(text if isinstance(text, str) else ""),
        hints=hints(definition.get("annotations")),
        definition=definition,
        schema=visible(json.dumps(definition.get("inputSchema", {}), indent=2, ensure_ascii=False)),
    )


def _own_lists(viewer: Membership, vendor: Vendor) -> set[str]:
    """The general list, and those of the credentials that the viewer's calls may use."""
    rows, teams = credential_summaries(viewer.organization, vendor=vendor.slug), selectors.team_ids(viewer)
    scopes = list_scopes(rows)
    return {GENERAL_LIST, *(scopes[row.id] for row in rows if row.serves(teams))}
