"""Tools of an organization by words of their names."""

from __future__ import annotations

from dataclasses import dataclass

from credentials.selectors import people_vendors
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from orgs.models import Membership
from orgs.roles import Role
from orgs.selectors import offered_tools_named
from orgs.server_access_reasons import effective_server_access
from proxy.protocol.tool_names import exposed_name


@dataclass(frozen=True, slots=True)
class FoundTool:
    """`name`: as tools/list has it; `own_name`: as the vendor has it."""

    name: str
    own_name: str
    vendor: Vendor


def tools_named(viewer: Membership, words: str, limit: int) -> list[FoundTool]:
    """At most `limit` tools, as last seen. Members find the tools of the vendors that they may use."""
    vendors = None
    if not viewer.has_role(Role.ADMIN):
        access = effective_server_access(viewer, people_vendors(viewer.organization))
        vendors = {each.vendor for each in access}
    catalog = registry.load()
    # An exposed name has its parts joined by underscores, and begins with a prefix that is much like the slug.
    rows = offered_tools_named(viewer.organization, words.replace("_", " "), vendors=vendors)[:limit]
    return [
        FoundTool(exposed_name(vendor.tool_prefix, row.tool), row.tool, vendor)
        for row in rows
        if (vendor := catalog.get(row.vendor)) is not None
    ]
