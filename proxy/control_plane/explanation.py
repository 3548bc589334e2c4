"""Explains why a subject may or may not call a tool, without asking a vendor. Used by the command and the page."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.conf import settings

from credentials.credential_scope import CredentialScope
from credentials.errors import UnusableCredential
from credentials.resolve import CredentialRef
from gateway.catalog import registry
from gateway.catalog.templates import FieldError
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend as coordination
from gateway.lib import clock, ids
from gateway.lib.errors import NotFound
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from oauth_ext.bearer import BearerIdentity, InvalidBearer
from oauth_ext.models import Client
from oauth_ext.selectors import service_client_of_any_organization
from orgs import selectors
from orgs.access_rules import ToolLimit, own_tools, refusing_limit
from orgs.allowed_items import ItemType
from orgs.models import Organization, User
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.caller import OrganizationAccess
from proxy.caller_rows import organization_access, principal_of
from proxy.calls.decide import VENDOR_CHECKS, CallStep, applicable_credential
from proxy.calls.open_destination import open_destination
from proxy.control_plane.assumed_callers import identity_of_client, identity_of_person
from proxy.control_plane.health import state_cache as health
from proxy.control_plane.health.selectors import circuit_of
from proxy.control_plane.health.states import LABELS, HealthStatus
from proxy.control_plane.health.words import joined
from proxy.control_plane.item_explanation import explained_item, vendor_of_item
from proxy.vendors.circuit import CircuitState

_TITLES = {
    CallStep.BEARER: sentence("Token"),
    CallStep.QUOTA: sentence("Call limit"),
    CallStep.SERVER_ACCESS: sentence("Vendor access"),
    CallStep.CREDENTIAL: sentence("Credentials"),
    CallStep.ALLOWLIST: sentence("Allowed tools"),
    CallStep.VENDOR: sentence("Vendor"),
}


_ITEM_TITLES = {ItemType.RESOURCES: sentence("Allowed resources"), ItemType.PROMPTS: sentence("Allowed prompts")}


@dataclass(frozen=True, slots=True)
class Step:
    """One check. A failed one has a `remedy`, and a `limit` where a limit refuses the tool."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""
    limit: ToolLimit | None = None
    # Of the list of resources or prompts that refuses.
    kind: ItemType | None = None

    @property
    def title(self) -> str:
        """The name as pages show it."""
        if self.kind is not None:
            return _ITEM_TITLES[self.kind]
        return _TITLES[CallStep(self.name)]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The checks in the order of a call. `principal` is None for an unknown caller, `vendor` for an unknown tool."""

    steps: tuple[Step, ...]
    principal: Principal | None = None
    vendor: Vendor | None = None

    @property
    def failing(self) -> Step | None:
        """The first failed step; None when the call would be allowed."""
        # The vendor step fails only while its circuit holds calls back; its last known health is reported in any case.
        return next((step for step in self.steps if not step.passed), None)


def explain_access(
    subject: str,
    tool: str,
    *,
    kind: ItemType | None = None,
    org_id: uuid.UUID | None = None,
    shows_count: bool = True,
) -> Explanation:
    """All steps for `subject` (a person's id, or `svc:<org-id>:<client-id>`) and `tool` (its name in tools/list).

    With `kind`, `tool` is the address of a resource or the name of a prompt, as the unified endpoint lists it.

    `org_id`: only subjects of this organization exist; without it a person's first organization counts.
    `shows_count` False hides the number of calls.   Spec: §5 · D33, D67, D77
    """
    try:
        identity = _identity(subject, org_id)
        principal = principal_of(identity)
        organization = organization_access(identity.org_id)
    except (InvalidBearer, NotFound) as fault:
        detail = fault.reason if isinstance(fault, InvalidBearer) else sentence("No member or agent matches.")
        remedy = sentence("An admin of the organization can invite the person or create the agent.")
        return Explanation((Step(CallStep.BEARER, False, detail, remedy),))
    catalog = registry.load()
    vendor = catalog.owner_of(tool) if kind is None else vendor_of_item(catalog, kind, tool)
    credential = applicable_credential(principal, organization, vendor) if vendor else None
    shows_count = shows_count or principal.user_id is None
    call = ExplainedCall(principal, organization, vendor, tool, credential, shows_count, kind)
    # Without a vendor there is nothing to check after server access.
    last = CallStep.VENDOR if vendor else CallStep.SERVER_ACCESS
    shown = list(CallStep)[: list(CallStep).index(last) + 1]
    return Explanation(tuple(Step(step, *_EXPLANATIONS[step](call)) for step in shown), principal, vendor)


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """The call to explain. `known_vendor` is None where no vendor's prefix begins the tool's name."""

    principal: Principal
    organization: OrganizationAccess
    known_vendor: Vendor | None
    tool: str
    credential: CredentialRef | None
    shows_count: bool
    kind: ItemType | None = None

    @property
    def vendor(self) -> Vendor:
        """Raises: NotFound."""
        if self.known_vendor is None:
            raise NotFound
        return self.known_vendor

    def passes(self, step: CallStep) -> bool:
        check = dict(VENDOR_CHECKS)[step]
        return check(self.principal, self.organization, self.vendor, self.credential) is None


# By role; None for an agent.
_CALLERS: dict[Role | None, str] = {
    None: sentence("%(who)s is an agent of %(organization)s (assuming a token that covers the vendor)."),
    Role.MEMBER: sentence("%(who)s is a member of %(organization)s (assuming a token that covers the vendor)."),
    Role.ADMIN: sentence("%(who)s is an admin of %(organization)s (assuming a token that covers the vendor)."),
    Role.OWNER: sentence("%(who)s is an owner of %(organization)s (assuming a token that covers the vendor)."),
}


# Whether the step is passed, the detail, the remedy, and the limit that refuses a tool.
_Explained = (
    tuple[bool, str, str] | tuple[bool, str, str, ToolLimit] | tuple[bool, str, str, ToolLimit | None, ItemType | None]
)


def _caller(call: ExplainedCall) -> _Explained:
    principal = call.principal
    kind = None if principal.user_id is None else principal.role
    return True, sentence(_CALLERS[kind], who=principal.label, organization=call.organization.name), ""


def _server_access(call: ExplainedCall) -> _Explained:
    if call.known_vendor is None and call.kind is not None:
        remedy = sentence(
            "Names of prompts start with their vendor, as acme_summarize, and so do addresses: acme+file:///notes.md."
        )
        return False, sentence("No vendor is named: %(item)s.", item=call.tool), remedy
    if call.known_vendor is None:
        remedy = sentence("Tool names start with their vendor, for example acme_search.")
        return False, sentence("There is no tool called %(tool)s.", tool=call.tool), remedy
    principal, vendor = call.principal, call.vendor
    if not call.passes(CallStep.SERVER_ACCESS):
        names = {"who": principal.label, "vendor": vendor.name, "organization": call.organization.name}
        remedy = (
            sentence("An admin of %(organization)s can give the agent access.", **names)
            if principal.kind is PrincipalKind.SERVICE
            else sentence(
                "An admin of %(organization)s can give access to the person or to one of their teams.", **names
            )
        )
        return False, sentence("%(who)s has no access to %(vendor)s.", **names), remedy
    if principal.role.at_least(Role.ADMIN):
        why = sentence("%(who)s can use %(vendor)s: owners and admins can use all vendors.")
    elif principal.granted_vendors is not None and vendor.slug in principal.granted_vendors:
        why = sentence("%(who)s can use %(vendor)s: access was given directly or through a team.")
    elif principal.kind is PrincipalKind.SERVICE:
        why = (
            sentence("%(who)s can use %(vendor)s: the agent isn’t limited to chosen vendors.")
            if principal.granted_vendors is None
            else sentence("%(who)s can use %(vendor)s: the agent has its own credentials.")
        )
    else:
        why = sentence("%(who)s can use %(vendor)s: all members can by default.")
    return True, sentence(why, who=principal.label, vendor=vendor.name), ""


def _credential(call: ExplainedCall) -> _Explained:
    organization, vendor, credential = call.organization, call.vendor, call.credential
    remedy = sentence(
        "An admin of %(organization)s can add %(vendor)s credentials.",
        organization=organization.name,
        vendor=vendor.name,
    )
    if not call.passes(CallStep.CREDENTIAL) or credential is None:
        return False, sentence("There are no %(vendor)s credentials for this caller.", vendor=vendor.name), remedy
    named = sentence(_CREDENTIALS[credential.scope], name=credential.name)
    try:
        open_destination(credential, vendor, organization.wrapped_keys, organization.org_id)
    except UnusableCredential as fault:
        return (
            False,
            sentence("Can’t be decrypted: %(credential)s (%(reason)s).", credential=named, reason=fault.reason.value),
            remedy,
        )
    except FieldError:
        return (
            False,
            sentence(
                "Fields that %(vendor)s now requires are missing: %(credential)s.",
                vendor=vendor.name,
                credential=named,
            ),
            remedy,
        )
    return True, sentence("Uses %(credential)s.", credential=named), ""


_CREDENTIALS = {
    CredentialScope.ORGANIZATION: sentence("the shared credentials"),
    CredentialScope.PERSON: sentence("the person’s own connection"),
    CredentialScope.TEAM: sentence("the team’s credentials"),
    CredentialScope.SERVICE_CLIENT: sentence("the agent’s own credentials"),
    CredentialScope.NAMED_KEY: sentence("the key %(name)s"),
}


def _allowlist(call: ExplainedCall) -> _Explained:
    principal, organization, vendor, tool = call.principal, call.organization, call.vendor, call.tool
    if call.kind is not None:
        found = explained_item(principal, organization, vendor, call.kind, tool)
        return found.passed, found.detail, found.remedy, found.limit, None if found.is_tools else call.kind
    # Only the vendor knows whether the prefix is part of its own name, so both spellings are checked.
    spellings = sorted({tool, tool.removeprefix(f"{vendor.tool_prefix}_")})
    marked = _marked_read_only(call, spellings) if principal.is_read_only else set()
    limits = [
        refusing_limit(principal, vendor.slug, name, organization.allowlists, is_read_only=name in marked)
        for name in spellings
    ]
    if None in limits:
        return True, _as_listed(call, _allowing(call), spellings), ""
    # A list refuses each spelling that is not on it; the mode refuses only what the lists let pass.
    limit = max(filter(None, limits), key=list(ToolLimit).index)
    detail, remedy = _LIMITS[limit]
    words = {"tool": tool, "who": principal.label, "org": organization.name}
    detail = detail or _ROLE_LIMITS[principal.role]
    return False, sentence(detail, **words), sentence(remedy, **words), limit


_ROLE_LIMITS = {
    Role.MEMBER: sentence("Members aren’t allowed to call %(tool)s."),
    Role.ADMIN: sentence("Admins aren’t allowed to call %(tool)s."),
    Role.OWNER: sentence("Owners aren’t allowed to call %(tool)s."),
}
# By limit, the detail and the remedy. The detail of a role's limit is its own.
_LIMITS = {
    ToolLimit.ROLE: (
        "",
        sentence("An owner of %(org)s can allow it."),
    ),
    ToolLimit.OWN: (
        sentence("%(who)s isn’t allowed to call %(tool)s."),
        sentence("An owner of %(org)s can allow it."),
    ),
    ToolLimit.READ_ONLY: (
        sentence("%(who)s can only call read-only tools, and %(tool)s isn’t marked read-only."),
        sentence("An owner of %(org)s can let %(who)s call all tools."),
    ),
}


def _allowing(call: ExplainedCall) -> str:
    principal, vendor = call.principal, call.vendor
    by_role = (vendor.slug, principal.role.value) in call.organization.allowlists
    own = own_tools(principal, vendor.slug) is not None
    if by_role:
        lists = (
            sentence("The role and the agent can call this tool.") if own else sentence("The role can call this tool.")
        )
    else:
        lists = sentence("The agent can call this tool.") if own else sentence("The role can call all tools.")
    if principal.is_read_only:
        return sentence("%(lists)s It’s marked read-only.", lists=lists)
    return lists


def _as_listed(call: ExplainedCall, allowing: str, names: Iterable[str]) -> str:
    """A tool that the vendor did not list is allowed, and is not found."""
    organization = required_row(Organization.objects.filter(pk=call.principal.org_id))
    offered = selectors.known_tools(organization, call.vendor.slug).exclude(seen_sha256=b"")
    listed = set(offered.values_list("tool", flat=True))
    if not listed or listed.intersection(names):
        return allowing
    return sentence(
        "%(allowing)s However, %(vendor)s did not list %(tool)s the last time its tools were loaded, so a call would"
        " fail.",
        allowing=allowing,
        vendor=call.vendor.name,
        tool=call.tool,
    )


def _marked_read_only(call: ExplainedCall, names: Iterable[str]) -> set[str]:
    """Those of the vendor's own `names` that count as read-only, as the organization last saw the vendor's tools."""
    organization = required_row(Organization.objects.filter(pk=call.principal.org_id))
    known, vendor = selectors.offered_definitions(organization, call.vendor.slug), call.vendor
    policies = {
        name: settings.VENDOR_TOOL_CONFIG.policy(vendor, name, json.loads(known[name] or "{}"))
        for name in names
        if name in known
    }
    return {name for name, policy in policies.items() if policy.read_only}


def _quota(call: ExplainedCall) -> _Explained:
    """Peeks at the window of all organizations' calls without counting."""
    rule = settings.TOOL_CALLS
    window = coordination.current().peek(rule, call.principal.subject)
    if not call.shows_count:
        # Calls of all organizations count together: an admin of one must not learn about calls in another.
        if window.allowed:
            return True, sentence("Within the limit of %(limit)s calls per hour.", limit=rule.limit), ""
        detail = sentence("The limit of %(limit)s calls per hour is used up.", limit=rule.limit)
        return False, detail, sentence("It resets within the hour. An operator sets the limit.")
    used = rule.limit - window.remaining
    detail = sentence("%(used)s of %(limit)s calls in the last hour.", used=used, limit=rule.limit)
    if window.allowed:
        return True, detail, ""
    minutes = -(-window.retry_after_s // 60)
    return (
        False,
        detail,
        sentence("The next call is possible in %(minutes)s min. An operator sets the limit.", minutes=minutes),
    )


def _vendor_state(call: ExplainedCall) -> _Explained:
    # Only an open circuit holds a call back. docs/decisions/0023
    vendor = call.vendor
    circuit = circuit_of(vendor.slug, [call.credential.id] if call.credential else [])
    names = {"vendor": vendor.name, "count": 0 if circuit is None else circuit.failures}
    if circuit is not None and circuit.state(clock.now()) is CircuitState.OPEN:
        detail = sentence("%(vendor)s couldn’t be reached %(count)s times in a row: calls are paused.", **names)
        return False, detail, sentence("Retrying at %(time)s UTC.", time=f"{circuit.until:%H:%M:%S}")
    tried = ""
    if circuit is not None:
        tried = sentence("%(vendor)s couldn’t be reached %(count)s times in a row. The next call is a retry.", **names)
    if vendor.customer_supplied_url:
        unwatched = sentence("%(vendor)s is self-hosted and not monitored.", **names)
        return True, sentence("%(first)s %(second)s", first=unwatched, second=tried) if tried else unwatched, ""
    state = health.read(coordination.current(), [vendor.slug])[vendor.slug]
    seen = joined(state.error_detail, state.remark)
    label = LABELS[state.status]
    detail = sentence("%(vendor)s: %(status)s", vendor=vendor.name, status=label)
    if seen:
        detail = sentence("%(vendor)s: %(status)s, %(detail)s", vendor=vendor.name, status=label, detail=seen)
    if state.status is HealthStatus.DOWN and not tried:
        tried = sentence("Calls are still attempted and will probably fail.")
    return True, sentence("%(first)s. %(second)s", first=detail, second=tried) if tried else detail, ""


_EXPLANATIONS: dict[CallStep, Callable[[ExplainedCall], _Explained]] = {
    CallStep.BEARER: _caller,
    CallStep.QUOTA: _quota,
    CallStep.SERVER_ACCESS: _server_access,
    CallStep.CREDENTIAL: _credential,
    CallStep.ALLOWLIST: _allowlist,
    CallStep.VENDOR: _vendor_state,
}


def _identity(subject: str, org_id: uuid.UUID | None) -> BearerIdentity:
    """The identity that a token of this subject would carry. Raises: NotFound."""
    if subject.startswith("svc:"):
        return _of_client(subject, org_id)
    key = ids.parse_id(subject)
    user = User.objects.filter(pk=key, is_active=True).first() if key else None
    if user is None:
        raise NotFound
    rows = selectors.memberships(user)
    membership = required_row(rows.filter(organization_id=org_id) if org_id else rows)
    return identity_of_person(user.pk, membership.organization_id)


def _of_client(subject: str, org_id: uuid.UUID | None) -> BearerIdentity:
    client: Client = service_client_of_any_organization(subject.rpartition(":")[2])
    if client.subject != subject or client.organization_id is None:
        raise NotFound
    if org_id is not None and client.organization_id != org_id:
        raise NotFound
    if client.is_expired():
        raise InvalidBearer(sentence("The agent has expired."))
    return identity_of_client(client)
