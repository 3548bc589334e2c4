"""Explains why a subject may or may not call a tool, without asking a vendor. Used by the command and the page."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from credentials.errors import UnusableCredential
from credentials.resolve import CredentialRef
from gateway.catalog import registry
from gateway.catalog.templates import FieldError
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend as coordination
from gateway.lib import clock, ids
from gateway.lib.errors import NotFound
from gateway.lib.rows import required_row
from oauth_ext import scopes
from oauth_ext.bearer import BearerIdentity, InvalidBearer
from oauth_ext.models import Client
from oauth_ext.selectors import service_client_of_any_organization
from orgs import selectors
from orgs.models import User
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.caller import OrganizationAccess
from proxy.caller_rows import organization_access, principal_of
from proxy.calls.decide import VENDOR_CHECKS, CallStep, applicable_credential, may_call_tool
from proxy.calls.open_destination import open_destination
from proxy.control_plane.health import state_cache as health
from proxy.control_plane.health.selectors import circuit_of
from proxy.control_plane.health.states import LABELS, HealthStatus
from proxy.vendors.circuit import CircuitState

_NO_CLIENT = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class Step:
    """One check. `remedy` says who can fix a failed one, and is empty otherwise."""

    name: str
    passed: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The checks in the order of a call."""

    steps: tuple[Step, ...]

    @property
    def failing(self) -> Step | None:
        """The first failed step; None when the call would be allowed."""
        # The vendor step fails only while its circuit holds calls back; its last known health is reported in any case.
        return next((step for step in self.steps if not step.passed), None)


def explain_access(
    subject: str, tool: str, *, org_id: uuid.UUID | None = None, shows_count: bool = True
) -> Explanation:
    """All steps for `subject` (a person's id, or `svc:<org-id>:<client-id>`) and `tool` (its name in tools/list).

    `org_id`: only subjects of this organization exist; without it a person's first organization counts.
    `shows_count` False hides the number of calls.   Spec: §5 · D33, D67, D77
    """
    try:
        identity = _identity(subject, org_id)
        principal = principal_of(identity)
        organization = organization_access(identity.org_id)
    except (InvalidBearer, NotFound) as fault:
        detail = (
            fault.reason if isinstance(fault, InvalidBearer) else "There is no such person or service account here."
        )
        remedy = "An admin of the organization can invite the person or create the service account."
        return Explanation((Step(CallStep.BEARER, False, detail, remedy),))
    vendor = registry.load().owner_of(tool)
    credential = applicable_credential(principal, organization, vendor) if vendor else None
    call = ExplainedCall(principal, organization, vendor, tool, credential, shows_count or principal.user_id is None)
    # Without a vendor there is nothing to check after server access.
    last = CallStep.VENDOR if vendor else CallStep.SERVER_ACCESS
    shown = list(CallStep)[: list(CallStep).index(last) + 1]
    return Explanation(tuple(Step(step, *_EXPLANATIONS[step](call)) for step in shown))


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """The call to explain. `known_vendor` is None where no vendor's prefix begins the tool's name."""

    principal: Principal
    organization: OrganizationAccess
    known_vendor: Vendor | None
    tool: str
    credential: CredentialRef | None
    shows_count: bool

    @property
    def vendor(self) -> Vendor:
        """Raises: NotFound."""
        if self.known_vendor is None:
            raise NotFound
        return self.known_vendor

    def passes(self, step: CallStep) -> bool:
        check = dict(VENDOR_CHECKS)[step]
        return check(self.principal, self.organization, self.vendor, self.credential) is None


# Whether the step is passed, the detail, and the remedy.
_Explained = tuple[bool, str, str]


def _caller(call: ExplainedCall) -> _Explained:
    principal = call.principal
    kind = "a service account" if principal.user_id is None else principal.role.value
    assumed = "A token for mcp:all or mcp:<vendor> is assumed."
    return True, f"{principal.label} is {kind} of {call.organization.name}. {assumed}", ""


def _server_access(call: ExplainedCall) -> _Explained:
    if call.known_vendor is None:
        remedy = "Use a name from tools/list; an operator can load vendors into the catalog."
        return False, f"No vendor's prefix begins the name {call.tool}.", remedy
    principal, vendor = call.principal, call.vendor
    if not call.passes(CallStep.SERVER_ACCESS):
        who = "the service account" if principal.kind is PrincipalKind.SERVICE else "the member or one of their teams"
        remedy = f"An admin of {call.organization.name} can grant {vendor.name} to {who}."
        return False, f"{principal.label} has no access to {vendor.name}.", remedy
    if principal.role.at_least(Role.ADMIN):
        why = f"the role {principal.role.value} may use every vendor"
    elif principal.granted_vendors is not None and vendor.slug in principal.granted_vendors:
        why = "by access of its own or of a team"
    elif principal.kind is PrincipalKind.SERVICE:
        why = "no list restricts it" if principal.granted_vendors is None else "it has credentials of its own"
    else:
        why = "by the organization's default"
    return True, f"{principal.label} may use {vendor.name}: {why}.", ""


def _credential(call: ExplainedCall) -> _Explained:
    organization, vendor, credential = call.organization, call.vendor, call.credential
    remedy = f"An admin of {organization.name} can store credentials of {vendor.name}."
    if not call.passes(CallStep.CREDENTIAL) or credential is None:
        return False, f"No credential of {vendor.name} applies.", remedy
    named = (
        f"the {credential.scope.value.replace('_', ' ')} credential{f' {credential.name}' if credential.name else ''}"
    )
    try:
        open_destination(credential, vendor, organization.wrapped_keys, organization.org_id)
    except UnusableCredential as fault:
        return False, f"{named} does not open ({fault.reason.value}).", remedy
    except FieldError:
        return False, f"{named} does not fit what {vendor.name} needs now.", remedy
    return True, f"{named} is used and opens.", ""


def _allowlist(call: ExplainedCall) -> _Explained:
    principal, organization, vendor, tool = call.principal, call.organization, call.vendor, call.tool
    # Only the vendor knows whether the prefix is part of its own name, so both spellings are checked.
    spellings = {tool, tool.removeprefix(f"{vendor.tool_prefix}_")}
    if any(may_call_tool(principal, organization, vendor, name) is None for name in spellings):
        listed = (vendor.slug, principal.role.value) in organization.allowlists
        return True, "The tool is on the role's list." if listed else "The role has no list: any tool.", ""
    detail = f"{tool} is not on the list of the role {principal.role.value}."
    return False, detail, f"An owner of {organization.name} can add it, or clear the list."


def _quota(call: ExplainedCall) -> _Explained:
    """Peeks at the window of all organizations' calls without counting."""
    rule = settings.TOOL_CALLS
    window = coordination.current().peek(rule, call.principal.subject)
    if not call.shows_count:
        # Calls of all organizations count together: an admin of one must not learn about calls in another.
        known = "another call is possible" if window.allowed else "they are used up"
        remedy = "" if window.allowed else "By itself within the hour; an operator sets the number."
        return window.allowed, f"Of {rule.limit} calls in an hour {known}.", remedy
    detail = f"{rule.limit - window.remaining} of {rule.limit} calls in the last hour."
    if window.allowed:
        return True, detail, ""
    minutes = -(-window.retry_after_s // 60)
    return False, detail, f"The next call is possible in {minutes} min, by itself; an operator sets the number."


def _vendor_state(call: ExplainedCall) -> _Explained:
    # Only an open circuit holds a call back. docs/decisions/0023
    vendor = call.vendor
    circuit = circuit_of(vendor.slug, [call.credential.id] if call.credential else [])
    tried = ""
    if circuit is not None and circuit.state(clock.now()) is CircuitState.OPEN:
        detail = f"{vendor.name} could not be reached {circuit.failures} times in a row: calls are held back."
        return False, detail, f"By itself: one call is let through after {circuit.until:%H:%M:%S} UTC."
    if circuit is not None:
        tried = f" It could not be reached {circuit.failures} times in a row: the next call is let through to see."
    if vendor.customer_supplied_url:
        return True, f"{vendor.name} is not monitored: it runs at an address of your own.{tried}", ""
    state = health.read(coordination.current(), [vendor.slug])[vendor.slug]
    seen = "; ".join(each for each in (state.error_detail, state.remark) if each)
    detail = f"{vendor.name}: {LABELS[state.status]}" + (f", {seen}" if seen else "")
    if state.status is HealthStatus.DOWN and not tried:
        tried = " Calls are let through all the same, and will probably fail."
    return True, f"{detail}.{tried}" if tried else detail, ""


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
    return _assumed(subject, membership.organization_id, user_id=user.pk)


def _of_client(subject: str, org_id: uuid.UUID | None) -> BearerIdentity:
    client: Client = service_client_of_any_organization(subject.rpartition(":")[2])
    if client.subject != subject or client.organization_id is None:
        raise NotFound
    if org_id is not None and client.organization_id != org_id:
        raise NotFound
    if client.is_expired():
        raise InvalidBearer("The service account has expired.")
    return _assumed(
        subject, client.organization_id, client_pk=client.pk, client_id=client.client_id, client_name=client.name
    )


def _assumed(
    subject: str,
    org_id: uuid.UUID,
    *,
    user_id: uuid.UUID | None = None,
    client_pk: uuid.UUID = _NO_CLIENT,
    client_id: str = "",
    client_name: str = "",
) -> BearerIdentity:
    return BearerIdentity(
        kind="jwt",
        subject=subject,
        org_id=org_id,
        user_id=user_id,
        client_pk=client_pk,
        client_id=client_id,
        client_name=client_name,
        scopes=frozenset({scopes.ALL}),
        audiences=(),
        expires_at=clock.now(),
    )
