"""Asks a vendor for its current tools, outside the connection pool of calls, and compares them with the known ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings

from credentials.connection_refresh import renewed_now
from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialRef, resolve
from credentials.sealing import wrapped_keys
from credentials.selectors import refs_by_vendor
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from orgs.models import Membership, Organization
from orgs.selectors import team_ids
from orgs.services.known_tools import DISCOVERY
from proxy.calls.open_destination import open_destination
from proxy.control_plane.vendor_request_limiter import vendor_requests
from proxy.credential_lists import CredentialDeleted, record_list
from proxy.outcomes import VendorFault
from proxy.protocol.tool_definitions import approvable_json
from proxy.vendors.destination import Destination
from proxy.vendors.era_verdicts import configured_verdicts
from proxy.vendors.errors import VendorProblem
from proxy.vendors.pool import configured_pool
from proxy.vendors.tool_directory import configured_directory
from proxy.vendors.tool_list import ReceivedList, definitions_of
from proxy.vendors.transport import configured_transport


class NotConnected(DomainError):
    """The person has no credential for the vendor. Spec: D78"""

    code, message, status = "no_credentials", sentence("This vendor isn’t connected."), 403


class VendorFailed(DomainError):
    """The vendor did not list its tools. Spec: D78"""

    status = 502

    def __init__(self, fault: VendorFault, detail: str) -> None:
        # A caller of discovery sees a timeout as unavailability.
        self.code = (VendorFault.UNAVAILABLE if fault is VendorFault.TIMEOUT else fault).value
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class Discovered:
    """Definitions by the vendor's own names, in its order, and the names that differ from the approved ones."""

    definitions: Mapping[str, dict[str, Any]]
    changed: frozenset[str]


def discover_for(membership: Membership, vendor: Vendor) -> Discovered:
    """The vendor's tools under the credential that the member's own calls would use. Spec: §4.9 · D78

    Raises: NotConnected, also when the credential is deleted meanwhile; UnusableCredential; TooManyVendorRequests;
    ConnectionEnded; VendorFailed; NotFound when the organization is deleted.
    """
    credential = own_credential(membership, vendor)
    return _discover_with(credential, membership.organization, vendor, settings.DISCOVER_DEADLINE_S)


def own_credential(membership: Membership, vendor: Vendor) -> CredentialRef:
    """The credential that the member's own calls would use. Raises: NotConnected."""
    candidates = refs_by_vendor(membership.organization_id).get(vendor.slug, ())
    credential = resolve(candidates, service_client_id=None, team_ids=team_ids(membership), user_id=membership.user_id)
    if credential is None:
        raise NotConnected
    return credential


def discover_with(credential_id: UUID, organization: Organization, vendor: Vendor, *, within_s: float) -> Discovered:
    """The vendor's tools under this credential of the organization. Raises: as `discover_for`."""
    stored = refs_by_vendor(organization.id).get(vendor.slug, ())
    credential = next((ref for ref in stored if ref.id == credential_id), None)
    if credential is None:
        raise NotConnected
    return _discover_with(credential, organization, vendor, within_s)


def _discover_with(
    credential: CredentialRef, organization: Organization, vendor: Vendor, within_s: float
) -> Discovered:
    credential = renewed_now(credential)
    where = open_destination(credential, vendor, wrapped_keys(organization.id), organization.id)
    with vendor_requests.slot(organization.id):
        definitions = async_to_sync(discover)(vendor, where, within_s)
    if credential.scope is CredentialScope.PERSON:
        # Lists are known for the organization's credentials: one person's account changes nothing in them.
        return Discovered(definitions, frozenset())
    try:
        changed = record_list(
            organization=organization,
            vendor=vendor.slug,
            credential_id=credential.id,
            definitions={name: approvable_json(each) for name, each in definitions.items()},
            actor=DISCOVERY,
        )
    except CredentialDeleted as gone:
        raise NotConnected from gone
    return Discovered(definitions, changed)


async def discover(vendor: Vendor, destination: Destination, within_s: float) -> Mapping[str, dict[str, Any]]:
    """The vendor's tool definitions by its own names, in its order. Raises: VendorFailed. Spec: §4.9 · D78"""
    transport = configured_transport()
    pool = configured_pool(transport, None, configured_verdicts(backend.current()))
    received: list[ReceivedList] = []
    directory = configured_directory(pool, on_fetched=lambda _, fetched: received.append(fetched))
    deadline = asyncio.get_running_loop().time() + within_s
    try:
        await directory.fresh_index(vendor, destination, deadline=deadline)
    except VendorProblem as problem:
        raise VendorFailed(problem.fault, problem.detail) from problem
    finally:
        await pool.aclose()
        await transport.aclose()
    return definitions_of(received[0])
