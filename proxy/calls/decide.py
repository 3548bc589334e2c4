"""Pure: whether a caller may use a vendor and a tool, and with which credential; the one rule for lists and calls.

Spec: §4.14 (1)-(2), §5 · D33, D34, D67, D75-D77, D99, D105
"""

from __future__ import annotations

from dataclasses import dataclass

from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialRef, resolve
from gateway.catalog.vendor import Vendor
from oauth_ext import scopes
from orgs import access_rules
from proxy.caller import Caller
from proxy.outcomes import Denial, Denied


@dataclass(frozen=True, slots=True)
class Allowed:
    """The vendor may be used, with this credential."""

    credential: CredentialRef


def may_use_vendor(caller: Caller, vendor: Vendor) -> Allowed | Denied:
    """Checks scope, grant and credential, in this order; the first that fails is returned."""
    principal, organization = caller.principal, caller.organization
    if not scopes.covers(principal.scopes, vendor.slug):
        needed = " ".join(sorted({*principal.scopes, f"mcp:{vendor.slug}"}))
        return Denied(Denial.SCOPE, f"This token does not cover {vendor.name}.", vendor.slug, needed)
    credential = resolve(
        organization.credentials.get(vendor.slug, ()),
        service_client_id=principal.service_client_pk,
        team_ids=principal.team_ids,
    )
    if not access_rules.may_use_vendor(
        principal,
        vendor.slug,
        default_access_all=organization.default_access_all,
        has_own_credential=credential is not None and credential.scope is CredentialScope.SERVICE_CLIENT,
    ):
        return Denied(
            Denial.NO_GRANT,
            f"{principal.label} has no access to {vendor.name}. An admin of {organization.name} can grant it.",
            vendor.slug,
        )
    if credential is None:  # vendors without a key, too, must be connected by the organization
        return Denied(
            Denial.NO_CREDENTIALS,
            f"{vendor.name} is not connected. An admin of {organization.name} can connect it.",
            vendor.slug,
        )
    return Allowed(credential)


def may_call_tool(caller: Caller, vendor: Vendor, vendor_tool_name: str) -> Denied | None:
    """None if allowed; `vendor_tool_name` in the vendor's spelling. Spec: D77"""
    if access_rules.may_call_tool(caller.principal, vendor.slug, vendor_tool_name, caller.organization.allowlists):
        return None
    return Denied(
        Denial.TOOL_NOT_ALLOWED,
        f"The tool {vendor_tool_name} is not on the allowlist of the role {caller.principal.role.value}."
        f" An owner of {caller.organization.name} can add it.",
        vendor.slug,
    )
