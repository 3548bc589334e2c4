"""Pure: whether a caller may use a vendor and a tool, and with which credential; the one rule for lists and calls.

Spec: §4.14 (1)-(2), §5 · D33, D34, D67, D75-D77, D99, D105, D165
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import cast

from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialRef
from gateway.catalog.vendor import Vendor
from gateway.lib.sentences import sentence
from oauth_ext import scopes
from orgs import access_rules
from orgs.access_rules import ItemLimit, ToolLimit
from orgs.allowed_items import ItemType
from orgs.principal import Principal
from proxy.caller import Caller, OrganizationAccess
from proxy.outcomes import Denial, Denied
from proxy.protocol.questions import ALLOWED_BY_DEFAULT

# Before the address of the page where the vendor is connected.
CONNECT = "Connect it"


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
    denied = _refused_vendor(principal, organization, vendor, credential)
    return cast("CredentialRef", credential) if denied is None else denied  # the last check passes no None


def may_call(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, vendor_tool_name: str, *, is_read_only: bool
) -> Denied | None:
    """VENDOR_CHECKS and then `may_call_tool`, for a caller whose token covers the vendor: the first that fails."""
    return refused_vendor(principal, organization, vendor) or may_call_tool(
        principal, organization, vendor, vendor_tool_name, is_read_only=is_read_only
    )


def refused_vendor(principal: Principal, organization: OrganizationAccess, vendor: Vendor) -> Denied | None:
    """The first of VENDOR_CHECKS that fails."""
    return _refused_vendor(principal, organization, vendor, applicable_credential(principal, organization, vendor))


def _refused_vendor(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef | None
) -> Denied | None:
    for _, check in VENDOR_CHECKS:
        denied = check(principal, organization, vendor, credential)
        if denied is not None:
            return denied
    return None


def applicable_credential(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor
) -> CredentialRef | None:
    index = organization.credentials.get(vendor.slug)
    if index is None:
        return None
    return index.find(
        service_client_id=principal.service_client_pk, team_ids=principal.team_ids, user_id=principal.user_id
    )


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
        sentence(
            "%(who)s has no access to %(vendor)s. An admin of %(organization)s can give it.",
            who=principal.label,
            vendor=vendor.name,
            organization=organization.name,
        ),
        vendor.slug,
        page=f"/orgs/{organization.org_id}/access-requests?vendor={vendor.slug}" if principal.user_id else "",
    )


def _check_credential(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, credential: CredentialRef | None
) -> Denied | None:
    if credential is not None:  # vendors without a key, too, must be connected by the organization
        return ended_connection(organization, vendor, credential) if credential.needs_sign_in else None
    if may_connect_themselves(principal, organization, vendor):
        return Denied(
            Denial.NO_CREDENTIALS,
            f"{vendor.name} is not connected. You can connect it for yourself.",
            vendor.slug,
            page=own_connections_page(organization, vendor),
            is_theirs=True,
            action=CONNECT,
        )
    only_operators = vendor.awaits_client and not vendor.takes_key
    remedy = (
        "An operator of this service must register a client there first."
        if only_operators
        else f"An admin of {organization.name} can connect it."
    )
    return Denied(
        Denial.NO_CREDENTIALS,
        f"{vendor.name} is not connected. {remedy}",
        vendor.slug,
        page=_connect_page(organization, vendor) if vendor.oauth is not None else "",
        action=CONNECT,
    )


def may_connect_themselves(principal: Principal, organization: OrganizationAccess, vendor: Vendor) -> bool:
    """Whether the caller is a person who may sign in to the vendor for their own calls. Spec: contract §8"""
    offers = "person" in vendor.sign_in_levels
    return offers and principal.user_id is not None and vendor.slug not in organization.without_people


def is_said_to_be_missing(caller: Caller, vendor: Vendor, denied: Denied) -> bool:
    """Whether a list of tools says that the vendor is not connected: it was, or only the person can connect it."""
    if denied.denial is not Denial.NO_CREDENTIALS or vendor.oauth is None:
        return False
    if applicable_credential(caller.principal, caller.organization, vendor) is not None:
        return True
    is_theirs = may_connect_themselves(caller.principal, caller.organization, vendor)
    return is_theirs and "organization" not in vendor.oauth.connections


def ended_connection(organization: OrganizationAccess, vendor: Vendor, connection: CredentialRef) -> Denied:
    """The refusal of a call whose connection the vendor no longer accepts."""
    return _sign_in_again(
        *(Denial.NO_CREDENTIALS, organization, vendor, connection),
        to_holder=f"{vendor.name} no longer accepts your connection. You can sign in again.",
        to_others=f"{vendor.name} no longer accepts the connection. An admin of {organization.name} can sign in again.",
    )


def more_scopes_needed(
    organization: OrganizationAccess, vendor: Vendor, connection: CredentialRef, scopes: str
) -> Denied:
    """The refusal of a call that needs more scopes than the connection has."""
    text = f"{vendor.name} requires more scopes for this call: {scopes}."
    return _sign_in_again(
        *(Denial.VENDOR_SCOPE, organization, vendor, connection),
        to_holder=f"{text} You can grant them by signing in again.",
        to_others=f"{text} An admin of {organization.name} can grant them by signing in again.",
    )


def _sign_in_again(
    denial: Denial,
    organization: OrganizationAccess,
    vendor: Vendor,
    connection: CredentialRef,
    *,
    to_holder: str,
    to_others: str,
) -> Denied:
    """A refusal that a new sign-in mends: of the person whose own connection it is, otherwise of an admin."""
    if connection.scope is CredentialScope.PERSON:
        page = own_connections_page(organization, vendor)
        return Denied(denial, to_holder, vendor.slug, page=page, is_theirs=True, action="Sign in")
    return Denied(denial, to_others, vendor.slug, page=_connect_page(organization, vendor), action=CONNECT)


def own_connections_page(organization: OrganizationAccess, vendor: Vendor) -> str:
    """The page where a person connects the vendor."""
    return f"/profile/connections?org_id={organization.org_id}&vendor={vendor.slug}"


def _connect_page(organization: OrganizationAccess, vendor: Vendor) -> str:
    """The page where an admin connects the vendor."""
    return f"/orgs/{organization.org_id}/vendors/{vendor.slug}/settings"


VENDOR_CHECKS: tuple[tuple[CallStep, Check], ...] = (
    (CallStep.SERVER_ACCESS, _check_server_access),
    (CallStep.CREDENTIAL, _check_credential),
)


def may_call_tool(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, vendor_tool_name: str, *, is_read_only: bool
) -> Denied | None:
    """The step after VENDOR_CHECKS: None if allowed; `vendor_tool_name` in the vendor's spelling. Spec: D77, D165"""
    limit = access_rules.refusing_limit(
        principal, vendor.slug, vendor_tool_name, organization.allowlists, is_read_only=is_read_only
    )
    if limit is None:
        return None
    return Denied(Denial.TOOL_NOT_ALLOWED, _limit_text(limit, principal, organization, vendor_tool_name), vendor.slug)


@dataclass(frozen=True, slots=True)
class AppTool:
    """A tool that names a resource as its app."""

    name: str  # the vendor's
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class Item:
    """A resource or prompt, as the vendor has it. `tools`: those whose app it is."""

    kind: ItemType
    own: str
    tools: tuple[AppTool, ...] = ()


def may_use_item(principal: Principal, organization: OrganizationAccess, vendor: Vendor, item: Item) -> Denied | None:
    """One resource or prompt, after VENDOR_CHECKS: None if allowed.

    An app follows its tools. Anything else is judged by the lists of its kind. Being read-only closes nothing but the
    apps of writing tools. docs/decisions/0115
    """
    if item.tools:
        return _refused_app(principal, organization, vendor, item)
    for limit in item_limits(principal, organization, vendor, item.kind):
        if not limit.allows(item.own):
            return _refused_item(principal, organization, vendor, item.kind, limit)
    return None


def item_limits(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, kind: ItemType
) -> tuple[ItemLimit, ...]:
    """All that `may_use_item` depends on beside the item and its tools."""
    return access_rules.item_limits(principal, vendor.slug, kind, organization.allowlists, organization.item_lists)


def refused_kind(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, kind: ItemType
) -> Denied | None:
    """The refusal where a list closes all of the kind, but for apps of tools."""
    closed = [each for each in item_limits(principal, organization, vendor, kind) if each.is_closed]
    return _refused_item(principal, organization, vendor, kind, closed[0]) if closed else None


def limits_apps(principal: Principal, organization: OrganizationAccess, vendor: Vendor) -> bool:
    """Whether it depends on the vendor's tools if the caller may read one of its apps."""
    return access_rules.limits_tools(principal, vendor.slug, organization.allowlists) or bool(
        item_limits(principal, organization, vendor, ItemType.RESOURCES)
    )


def may_call_some(principal: Principal, organization: OrganizationAccess, vendor: Vendor) -> bool:
    """False where a list has no tool at all."""
    return frozenset() not in access_rules.tool_lists(principal, vendor.slug, organization.allowlists)


def _refused_app(principal: Principal, organization: OrganizationAccess, vendor: Vendor, item: Item) -> Denied | None:
    refused = None
    for tool in item.tools:
        refused = may_call_tool(principal, organization, vendor, tool.name, is_read_only=tool.is_read_only)
        if refused is None:
            return None
    return refused and replace(refused, denial=Denial.ITEM_NOT_ALLOWED)


def _refused_item(
    principal: Principal, organization: OrganizationAccess, vendor: Vendor, kind: ItemType, refusing: ItemLimit
) -> Denied:
    who = f"The role {principal.role.value}" if refusing.limit is ToolLimit.ROLE else _agent_words(principal)
    owner = f"An owner of {organization.name} can change that."
    if refusing.items is None:
        text = f"{who} can call only some tools of {vendor.name}, and so use none of its {kind}. {owner}"
    elif refusing.items.entries:
        text = f"{who} can use only some {kind} of {vendor.name}, and this is none of them. {owner}"
    else:
        text = f"{who} can use none of the {kind} of {vendor.name}. {owner}"
    return Denied(Denial.ITEM_NOT_ALLOWED, text, vendor.slug)


def allowed_questions(organization: OrganizationAccess, vendor: Vendor) -> frozenset[str]:
    """The capabilities of its callers that a vendor may rely on."""
    return organization.questions.get(vendor.slug, ALLOWED_BY_DEFAULT)


def _limit_text(limit: ToolLimit, principal: Principal, organization: OrganizationAccess, tool: str) -> str:
    owner = f"An owner of {organization.name}"
    match limit:
        case ToolLimit.ROLE:
            return f"The role {principal.role.value} isn't allowed to call {tool}. {owner} can allow it."
        case ToolLimit.OWN:
            return f"{_agent_words(principal)} isn't allowed to call {tool}. {owner} can allow it."
        case ToolLimit.READ_ONLY:
            return (
                f"{_agent_words(principal)} can call only read-only tools, and {tool} is not marked as"
                f" read-only. {owner} can change that."
            )


def _agent_words(principal: Principal) -> str:
    return f"The service client {principal.label if principal.agent is None else principal.agent.name}"


def tool_rights(principal: Principal, organization: OrganizationAccess, vendor: Vendor) -> Hashable:
    """All that `may_call_tool` depends on beside the tool: equal values allow equal tools of the vendor."""
    return access_rules.tool_lists(principal, vendor.slug, organization.allowlists), principal.is_read_only
