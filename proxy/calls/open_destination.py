"""The destination of calls with one credential: its address and headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

import structlog

from credentials.data_key_cache import WrappedKey
from credentials.errors import UnusableCredential, UnusableReason
from credentials.resolve import CredentialRef
from credentials.sealing import open_fields
from credentials.token_audience import covers
from gateway.catalog.templates import ACCESS_TOKEN, FieldError, vendor_headers, vendor_url
from gateway.catalog.vendor import Vendor
from proxy.caller import Caller, OrganizationAccess
from proxy.calls.decide import ended_connection, may_use_vendor, more_scopes_needed
from proxy.outcomes import Denial, Denied
from proxy.request_context import RequestContext
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


async def usable_now(context: RequestContext, vendor: Vendor) -> tuple[CredentialRef, Destination] | Denied:
    """As `usable_vendor`, with a token that still works. Spec: contract §8"""
    usable = usable_vendor(context.caller, vendor)
    if isinstance(usable, Denied) or usable[0].refresh_at_s is None:
        return usable
    return await renewed(context, vendor, usable)


async def renewed(
    context: RequestContext, vendor: Vendor, usable: tuple[CredentialRef, Destination]
) -> tuple[CredentialRef, Destination] | Denied:
    """`usable` with a token that still works. Spec: contract §8"""
    connection, _ = usable
    current = await context.runtime.vendor_tokens.current(connection)
    return usable if current is connection else _with_token(context.caller, vendor, connection, current)


async def after_rejection(
    context: RequestContext, vendor: Vendor, connection: CredentialRef
) -> tuple[CredentialRef, Destination] | Denied | None:
    """As `renewed`, after the vendor refused the token: that call did nothing, so it may be repeated once. None: there
    is no other token to try."""
    current = await context.runtime.vendor_tokens.after_rejection(connection)
    if current is not None and current.revision == connection.revision and not current.needs_sign_in:
        return None
    return _with_token(context.caller, vendor, connection, current)


async def refused_scopes(
    context: RequestContext, vendor: Vendor, connection: CredentialRef, target: Destination, named: str
) -> Denied:
    """The refusal of a call for want of the scopes that the vendor named. The next sign-in asks for them."""
    # They are shown: a token among them is none.
    secrets = tuple(target.secrets())
    scopes = " ".join(each for each in named.split() if not any(secret in each for secret in secrets))
    await context.runtime.vendor_tokens.note_wanted_scopes(connection, scopes)
    return more_scopes_needed(context.caller.organization, vendor, connection, scopes)


def _with_token(
    caller: Caller, vendor: Vendor, connection: CredentialRef, current: CredentialRef | None
) -> tuple[CredentialRef, Destination] | Denied:
    if current is None or current.needs_sign_in:
        return ended_connection(caller.organization, vendor, connection)
    # The caller's rows are older than the token: the next call finds it there.
    found = _opened(caller.organization, vendor, current)
    return found if isinstance(found, Denied) else (current, found)


def destination(organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef) -> Destination | Denied:
    """The destination, or the reason why the credential cannot be used."""
    # Computed once per load of the organization and the catalog; the opened credential is not kept.
    known = organization.destinations.get(credential.id)
    if known is not None and known[0] is vendor:
        return known[1]
    found = _opened(organization, vendor, credential)
    if not isinstance(found, Denied):
        organization.destinations[credential.id] = (vendor, found)
    return found


def _opened(organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef) -> Destination | Denied:
    try:
        return open_destination(credential, vendor, organization.wrapped_keys, organization.org_id)
    except (UnusableCredential, FieldError) as fault:
        log.error("credential unusable", vendor=vendor.slug, org_id=str(organization.org_id), reason=str(fault))
        if isinstance(fault, UnusableCredential) and fault.reason is UnusableReason.OTHER_ADDRESS:
            return ended_connection(organization, vendor, credential)
        return Denied(
            Denial.UNUSABLE_CREDENTIALS,
            f"The stored credentials of {vendor.name} cannot be used."
            f" An admin of {organization.name} can replace them.",
            vendor.slug,
        )


def open_destination(
    credential: CredentialRef, vendor: Vendor, wrapped: Sequence[WrappedKey], org_id: UUID
) -> Destination:
    """Opens the credential with one of the `wrapped` keys. Raises: UnusableCredential; FieldError."""
    if credential.is_connection and not covers(credential.resource, vendor.url):
        # The catalog has moved the vendor: its former token is for another server.
        raise UnusableCredential(UnusableReason.OTHER_ADDRESS)
    url, headers = _open(credential, vendor, wrapped, org_id)
    key = PoolKey.of(org_id, vendor.slug, credential.id, url, headers, newest_protocol=vendor.newest_protocol)
    arguments = (credential, vendor, wrapped, org_id)
    return Destination(
        key,
        partial(_reopen, *arguments),  # opened again for each session: the destination holds no plain credential
        fixed_address=not vendor.customer_supplied_url,
        timeout_s=vendor.timeout_seconds,
        newest_protocol=vendor.newest_protocol,
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
    if token := values.get(ACCESS_TOKEN):
        yield token
    for each in vendor.fields:
        value = values.get(each.name, "")
        if each.secret and value != each.default and value not in each.options:
            yield value
