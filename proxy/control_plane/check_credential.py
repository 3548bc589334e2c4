"""Checks a stored credential with its vendor now."""

from __future__ import annotations

from credentials.connection_refresh import renewed_now
from credentials.errors import ConnectionEnded, UnusableCredential
from credentials.models import Credential
from credentials.resolve import CredentialRef
from credentials.sealing import open_fields, wrapped_keys
from credentials.selectors import refs_by_vendor
from credentials.services.checks import record_check
from credentials.token_audience import covers
from credentials.vendor_check import CheckResult, Verdict
from gateway.catalog.fields import check_fields
from gateway.catalog.registry import known_vendor
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.sentences import sentence
from orgs.models import Organization, User
from proxy.control_plane.connect_vendor import ask_vendor

_OUTGROWN = CheckResult(
    Verdict.UNCONFIRMED, sentence("Not checked: the vendor needs different fields now. Replace the credentials.")
)
_UNUSABLE = CheckResult(
    Verdict.UNCONFIRMED, sentence("Not checked: the saved values can’t be decrypted. Replace the credentials.")
)


def check_again(*, actor: User, organization: Organization, credential: Credential) -> Credential:
    """Ask the vendor, and note the answer. Spec: D63, D97

    Raises: NotFound for a vendor that left the catalog, and for a credential that was replaced or deleted meanwhile;
    Forbidden; TooManyVendorRequests.
    """
    revision, result = _ask(organization, credential)
    return record_check(
        actor=actor, organization=organization, credential_id=credential.id, revision=revision, check=result
    )


def _ask(organization: Organization, credential: Credential) -> tuple[int, CheckResult]:
    """The revision that was checked, and the answer."""
    vendor = known_vendor(credential.vendor)
    candidates = refs_by_vendor(organization.id).get(vendor.slug, ())
    stored = next((ref for ref in candidates if ref.id == credential.id), None)
    if stored is None:
        raise NotFound
    if stored.is_connection:
        return credential.revision, _of_connection(organization, vendor, stored)
    try:
        opened = open_fields(stored, organization_id=organization.id, wrapped=wrapped_keys(organization.id))
        values = check_fields(vendor, opened)
    except UnusableCredential:
        return stored.revision, _UNUSABLE
    except Invalid:
        return stored.revision, _OUTGROWN
    return stored.revision, ask_vendor(organization, vendor, values)


def _of_connection(organization: Organization, vendor: Vendor, connection: CredentialRef) -> CheckResult:
    """The vendor's word on the connection, with a token that has not ended."""
    try:
        current = renewed_now(connection)
        opened = open_fields(current, organization_id=organization.id, wrapped=wrapped_keys(organization.id))
    except ConnectionEnded as ended:
        return CheckResult(Verdict.REJECTED, ended.message)
    except UnusableCredential:
        return _UNUSABLE
    if not covers(current.resource, vendor.url):
        return CheckResult(Verdict.UNCONFIRMED, ConnectionEnded.message)
    return ask_vendor(organization, vendor, opened)
