"""Asks a vendor for its current resources, templates and prompts, outside the connection pool of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from asgiref.sync import async_to_sync
from django.conf import settings

from credentials.connection_refresh import renewed_now
from credentials.sealing import wrapped_keys
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend
from orgs.access_rules import allowed_tools
from orgs.allowed_items import ItemType
from orgs.models import Membership
from orgs.roles import Role
from orgs.selectors import allowlists, item_lists
from proxy.calls.open_destination import open_destination
from proxy.control_plane.discovery import VendorFailed, own_credential
from proxy.control_plane.vendor_request_limiter import vendor_requests
from proxy.protocol import item_definitions
from proxy.protocol.item_kinds import ItemKind
from proxy.vendors.destination import Destination
from proxy.vendors.era_verdicts import configured_verdicts
from proxy.vendors.errors import VendorProblem
from proxy.vendors.item_directory import configured_items
from proxy.vendors.item_list import ItemList
from proxy.vendors.pool import configured_pool
from proxy.vendors.transport import configured_transport


@dataclass(frozen=True, slots=True)
class VendorItem:
    """`own`: the vendor's address or name; `exposed`: at the unified endpoint; `definition`: as the vendor wrote it."""

    own: str
    exposed: str
    definition: Mapping[str, Any]


Items = Mapping[ItemKind, list[VendorItem]]


def items_for(membership: Membership, vendor: Vendor) -> Items:
    """The vendor's lists under the credential that the member's own calls would use; empty ones where it has none.

    Raises: NotConnected; UnusableCredential; TooManyVendorRequests; ConnectionEnded; VendorFailed.
    """
    org_id, credential = membership.organization_id, renewed_now(own_credential(membership, vendor))
    where = open_destination(credential, vendor, wrapped_keys(org_id), org_id)
    with vendor_requests.slot(org_id):
        return async_to_sync(_ask)(vendor, where, settings.DISCOVER_DEADLINE_S)


def limited_roles(org_id: UUID, vendor: Vendor) -> list[Role]:
    """Roles with a list of the vendor's tools, resources or prompts: they cannot use all. docs/decisions/0115"""
    tools, items = allowlists(org_id), item_lists(org_id)
    return [
        role
        for role in Role
        if allowed_tools(role, vendor.slug, tools) is not None
        or any((vendor.slug, role.value, kind) in items for kind in ItemType)
    ]


async def _ask(vendor: Vendor, destination: Destination, within_s: float) -> Items:
    transport = configured_transport()
    pool = configured_pool(transport, None, configured_verdicts(backend.current()))
    items = configured_items(pool)
    deadline = asyncio.get_running_loop().time() + within_s
    found: dict[ItemKind, list[VendorItem]] = {}
    try:
        declared = await items.declared(destination, deadline=deadline)
        for kind in ItemKind:
            found[kind] = []
            if kind.capability in declared:
                index = await items.index(kind, vendor, destination, deadline=deadline)
                found[kind] = _entries(index.content)
    except VendorProblem as problem:
        raise VendorFailed(problem.fault, problem.detail) from problem
    finally:
        await items.aclose()
        await pool.aclose()
        await transport.aclose()
    return found


def _entries(content: ItemList) -> list[VendorItem]:
    definitions = map(msgspec.json.decode, item_definitions.entries_of(content.own_body))
    return [VendorItem(name.own, name.exposed, each) for name, each in zip(content.names, definitions, strict=True)]
