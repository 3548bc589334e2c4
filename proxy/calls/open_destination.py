"""The destination of calls with one credential: its address and headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

import structlog

from credentials.data_key_cache import WrappedKey
from credentials.errors import UnusableCredential
from credentials.resolve import CredentialRef
from credentials.sealing import open_fields
from gateway.catalog.templates import FieldError, vendor_headers, vendor_url
from gateway.catalog.vendor import Vendor
from proxy.caller import Caller, OrganizationAccess
from proxy.calls.decide import may_use_vendor
from proxy.outcomes import Denial, Denied
from proxy.vendors import errors
from proxy.vendors.destination import Destination, PoolKey

log = structlog.get_logger(__name__)


def usable_vendor(caller: Caller, vendor: Vendor) -> tuple[CredentialRef, Destination] | Denied:
    """The credential that the caller may use the vendor with, and where calls with it go."""
    credential = may_use_vendor(caller, vendor)
    if isinstance(credential, Denied):
        return credential
    found = destination(caller.organization, vendor, credential)
    return found if isinstance(found, Denied) else (credential, found)


def destination(organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef) -> Destination | Denied:
    """The destination, or the reason why the credential cannot be used."""
    # Computed once per load of the organization and the catalog; the opened credential is not kept.
    known = organization.destinations.get(credential.id)
    if known is not None and known[0] is vendor:
        return known[1]
    try:
        found = open_destination(credential, vendor, organization.wrapped_keys, organization.org_id)
    except (UnusableCredential, FieldError) as fault:
        log.error("credential unusable", vendor=vendor.slug, org_id=str(organization.org_id), reason=str(fault))
        return Denied(
            Denial.UNUSABLE_CREDENTIALS,
            f"The stored credentials of {vendor.name} cannot be used."
            f" An admin of {organization.name} can replace them.",
            vendor.slug,
        )
    organization.destinations[credential.id] = (vendor, found)
    return found


def open_destination(
    credential: CredentialRef, vendor: Vendor, wrapped: Sequence[WrappedKey], org_id: UUID
) -> Destination:
    """Opens the credential with one of the `wrapped` keys. Raises: UnusableCredential; FieldError."""
    url, headers = _open(credential, vendor, wrapped, org_id)
    key = PoolKey.of(org_id, vendor.slug, credential.id, url, headers)
    arguments = (credential, vendor, wrapped, org_id)
    return Destination(
        key,
        partial(_reopen, *arguments),  # opened again for each session: the destination holds no plain credential
        fixed_address=not vendor.customer_supplied_url,
        timeout_s=vendor.timeout_seconds,
        secrets=partial(_secrets, *arguments),
    )


def _open(
    credential: CredentialRef, vendor: Vendor, wrapped: Sequence[WrappedKey], org_id: UUID
) -> tuple[str, Mapping[str, str]]:
    fields = open_fields(credential, organization_id=org_id, wrapped=wrapped)
    return vendor_url(vendor, fields), vendor_headers(vendor, fields)


def _reopen(
    credential: CredentialRef, vendor: Vendor, wrapped: Sequence[WrappedKey], org_id: UUID
) -> tuple[str, Mapping[str, str]]:
    try:
        return _open(credential, vendor, wrapped, org_id)
    except (UnusableCredential, FieldError) as fault:  # it was readable when the destination was computed
        log.error("credential unusable", vendor=vendor.slug, org_id=str(org_id), reason=str(fault))
        raise errors.rejected_credentials() from fault


def _secrets(credential: CredentialRef, vendor: Vendor, wrapped: Sequence[WrappedKey], org_id: UUID) -> Iterable[str]:
    """Values of secret fields, except those that the catalog publishes as default or option."""
    try:
        values = open_fields(credential, organization_id=org_id, wrapped=wrapped)
    except UnusableCredential as fault:
        raise errors.rejected_credentials() from fault
    for each in vendor.fields:
        value = values.get(each.name, "")
        if each.secret and value != each.default and value not in each.options:
            yield value
