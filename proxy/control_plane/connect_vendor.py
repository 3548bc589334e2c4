"""Stores a vendor's credential after checking it with the vendor. Used by API, pages and consent screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import async_to_sync

from credentials.credential_scope import CredentialScope
from credentials.errors import SignInNeeded
from credentials.models import Credential
from credentials.services.credentials import ServiceClient, replace_named_key, store_credential
from credentials.vendor_check import CheckResult, check
from gateway.catalog.fields import check_fields
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import DomainError, NotFound
from orgs.models import Organization, Team, User
from proxy.control_plane.discovery import discover_with
from proxy.control_plane.vendor_request_limiter import vendor_requests
from proxy.vendors import credential_probe

# Seconds. A person waits for them, after those of the check.
LISTED_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Connected:
    credential: Credential
    check: CheckResult


@dataclass(frozen=True, slots=True)
class LoadedTools:
    """`count` of the vendor's tools; None if it did not list them, and `problem` says why."""

    count: int | None
    problem: str = ""


def connect_vendor(
    *,
    actor: User,
    organization: Organization,
    vendor: Vendor,
    fields: Mapping[str, object],
    scope: CredentialScope = CredentialScope.ORGANIZATION,
    team: Team | None = None,
    service_client: ServiceClient | None = None,
    name: str = "",
    anyway: bool = False,
) -> Connected:
    """Store the fields unless the vendor refuses them within five seconds. Spec: §4.6 · D62-D66, D170

    Stored fields are replaced only by fields that the vendor accepted. `anyway`: also by fields that it did not answer
    for. Raises: SignInNeeded; Invalid with `fields`; TooManyVendorRequests; CredentialRejected, EndpointNotAllowed; as
    `store_credential`.
    """
    values, result = _accepted(organization, vendor, fields)
    stored = store_credential(
        actor=actor,
        organization=organization,
        vendor=vendor,
        scope=scope,
        fields=values,
        team=team,
        service_client=service_client,
        name=name,
        check=result,
        anyway=anyway,
    )
    return Connected(stored, result)


def replace_key(
    *,
    actor: User,
    organization: Organization,
    vendor: Vendor,
    key_id: UUID,
    fields: Mapping[str, object],
    anyway: bool = False,
) -> Connected:
    """New fields for a named key, as `connect_vendor`. Raises: the same; NotFound. Spec: D153, D170"""
    values, result = _accepted(organization, vendor, fields)
    stored = replace_named_key(
        actor=actor,
        organization=organization,
        key_id=key_id,
        vendor=vendor,
        fields=values,
        check=result,
        anyway=anyway,
    )
    return Connected(stored, result)


def _accepted(
    organization: Organization, vendor: Vendor, fields: Mapping[str, object]
) -> tuple[dict[str, str], CheckResult]:
    """The checked fields and the vendor's word on them.

    Raises: SignInNeeded; Invalid; as `ask_vendor` and `raise_if_refused`.
    """
    if not vendor.takes_key:
        # Stored without a token, it would count as connected.
        raise SignInNeeded
    values = check_fields(vendor, fields)
    result = ask_vendor(organization, vendor, values)
    result.raise_if_refused(vendor.name)
    return values, result


def load_tools(organization: Organization, vendor: Vendor, credential: Credential) -> LoadedTools:
    """Ask for the tools once right after the connection, so that pages and reviews have them. Spec: §4.9 · D78

    Raises: NotFound when the organization is deleted.
    """
    try:
        found = discover_with(credential.id, organization, vendor, within_s=LISTED_WITHIN_S)
    except NotFound:
        raise
    except DomainError as problem:
        return LoadedTools(None, problem.message)
    return LoadedTools(len(found.definitions))


def ask_vendor(organization: Organization, vendor: Vendor, values: Mapping[str, str]) -> CheckResult:
    """The vendor's word on these fields. No transaction may be open. Raises: TooManyVendorRequests."""
    with vendor_requests.slot(organization.id):
        return async_to_sync(check)(vendor, values, ask=credential_probe.probe_credentials)
