"""Stores a vendor's credential after checking it with the vendor. Used by API, pages and consent screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asgiref.sync import async_to_sync

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.services.credentials import ServiceClient, store_credential
from credentials.vendor_check import CheckResult, check
from gateway.catalog.fields import check_fields
from gateway.catalog.vendor import Vendor
from orgs.models import Organization, Team, User
from proxy.control_plane.vendor_request_limiter import vendor_requests
from proxy.vendors import credential_probe


@dataclass(frozen=True, slots=True)
class Connected:
    credential: Credential
    check: CheckResult


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
) -> Connected:
    """Store the fields unless the vendor refuses them within five seconds. Spec: §4.6 · D62-D66

    Raises: Invalid with `fields`; TooManyVendorRequests; CredentialRejected, EndpointNotAllowed; as `store_credential`.
    """
    values = check_fields(vendor, fields)
    # No transaction is open during the vendor's answer.
    with vendor_requests.slot(organization.id):
        result = async_to_sync(check)(vendor, values, ask=credential_probe.probe_credentials)
    result.raise_if_refused()
    stored = store_credential(
        actor=actor,
        organization=organization,
        vendor=vendor,
        scope=scope,
        fields=values,
        team=team,
        service_client=service_client,
        name=name,
        validated=result.validated,
    )
    return Connected(stored, result)
