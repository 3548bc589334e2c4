"""Pure: whether a caller may use a vendor and a tool, and with which credential; the one rule for lists and calls.

Spec: §4.14 (1)-(2), §5 · D33, D34, D67, D75-D77, D99, D105
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import StrEnum
from typing import cast

from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialRef
from gateway.catalog.vendor import Vendor
from oauth_ext import scopes
from orgs import access_rules
from orgs.principal import Principal
from proxy.caller import Caller, OrganizationAccess
from proxy.outcomes import Denial, Denied


class CallStep(StrEnum):
    """The checks of a call, in their order. The explanation of a call shows them under these names."""

    BEARER = "token"
    QUOTA = "quota"
    SERVER_ACCESS = "grant"
    CREDENTIAL = "credential"
    ALLOWLIST = "allowlist"
    VENDOR = "vendor"


# A check returns None if it passes. `credential` is None if none applies.
Check = Callable[[Principal, OrganizationAccess, Vendor, CredentialRef | None], Denied | None]


def may_use_vendor(caller: Caller, vendor: Vendor) -> CredentialRef | Denied:
    """The credential to use the vendor with. Checks scope and then VENDOR_CHECKS; the first that fails is returned."""
    principal, organization = caller.principal, caller.organization
    if not scopes.covers(principal.scopes, vendor.slug):
        needed = " ".join(sorted({*principal.scopes, f"mcp:{vendor.slug}"}))
        return Denied(Denial.SCOPE, f"This token does not cover {vendor.name}.", vendor.slug, needed)
    credential = applicable_credential(principal, organization, vendor)
    for _, check in VENDOR_CHECKS:
        denied = check(principal, organization, vendor, credential)
        if denied is not None:
            return denied
    return cast("CredentialRef", credential)  # the last check passes no None


def applicable_credential(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor
) -> CredentialRef | None:
    index = organization.credentials.get(vendor.slug)
    if index is None:
        return None
    return index.find(service_client_id=principal.service_client_pk, team_ids=principal.team_ids)


def _check_server_access(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef | None
) -> Denied | None:
    if access_rules.may_use_vendor(
        principal,
        vendor.slug,
        default_access_all=organization.default_access_all,
        has_own_credential=credential is not None and credential.scope is CredentialScope.SERVICE_CLIENT,
    ):
        return None
    return Denied(
        Denial.NO_SERVER_ACCESS,
        f"{principal.label} has no access to {vendor.name}. An admin of {organization.name} can grant it.",
        vendor.slug,
    )


def _check_credential(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef | None
) -> Denied | None:
    if credential is not None:  # vendors without a key, too, must be connected by the organization
        return None
    return Denied(
        Denial.NO_CREDENTIALS,
        f"{vendor.name} is not connected. An admin of {organization.name} can connect it.",
        vendor.slug,
    )


VENDOR_CHECKS: tuple[tuple[CallStep, Check], ...] = (
    (CallStep.SERVER_ACCESS, _check_server_access),
    (CallStep.CREDENTIAL, _check_credential),
)


def may_call_tool(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, vendor_tool_name: str
) -> Denied | None:
    """The step after VENDOR_CHECKS: None if allowed; `vendor_tool_name` in the vendor's spelling. Spec: D77"""
    if access_rules.may_call_tool(principal, vendor.slug, vendor_tool_name, organization.allowlists):
        return None
    return Denied(
        Denial.TOOL_NOT_ALLOWED,
        f"The tool {vendor_tool_name} is not on the allowlist of the role {principal.role.value}."
        f" An owner of {organization.name} can add it.",
        vendor.slug,
    )


def tool_rights(principal: Principal, organization: OrganizationAccess, vendor: Vendor) -> Hashable:
    """All that `may_call_tool` depends on beside the tool: equal values allow equal tools of the vendor."""
    return access_rules.allowed_tools(principal.role, vendor.slug, organization.allowlists)
