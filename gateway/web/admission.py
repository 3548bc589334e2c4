"""Passing a gate: role, then rate limit, then subscription. One function for pages and API. Spec: D5"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

from billing import entitlements
from gateway.coordination.store import Admission
from gateway.lib.errors import DomainError
from gateway.web import rate
from gateway.web.gate import Gate
from orgs import access
from orgs.models import Membership, User


@dataclass(frozen=True, slots=True)
class Passed:
    """The membership a route of an organization acts under, and what the limiter said."""

    membership: Membership | None
    admission: Admission


def pass_gate(request: HttpRequest, user: User, gate: Gate, org_id: str | None) -> Passed:
    """Who passed, or the first refusal in the order of the specification.

    Raises: NotFound, Forbidden, RateLimited, SubscriptionRequired.   Spec: D4-D6, D22
    """
    membership = pass_role(request, user, gate, org_id)
    return Passed(membership, pass_limit_and_plan(request, gate, membership))


def pass_role(request: HttpRequest, user: User, gate: Gate, org_id: str | None) -> Membership | None:
    """The membership that the gate asks for, None where it names no role.

    Somebody who is refused for their role still uses up the backstop, so that ids cannot be tried without end.
    Raises: NotFound, Forbidden.
    """
    if gate.role is None:
        return None
    try:
        return access.membership(user, org_id or "", role=gate.role)
    except DomainError:
        rate.count(request, settings.BACKSTOP)
        raise


def pass_limit_and_plan(request: HttpRequest, gate: Gate, membership: Membership | None) -> Admission:
    """What the limiter says to somebody whose role is high enough.

    Raises: RateLimited, SubscriptionRequired.
    """
    admission = rate.count(request, gate.limit or settings.BACKSTOP)
    if membership is not None:
        if gate.organization_limit is not None:
            rate.count_under(gate.organization_limit, f"org:{membership.organization_id}")
        if gate.active_plan:
            entitlements.require_active(membership.organization)
        if gate.entitlement is not None:
            entitlements.require(membership.organization, gate.entitlement)
    return admission
