"""Gate checks of pages and API in one order: role, rate limit, subscription. Spec: D5"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest

from billing import entitlements
from gateway.coordination.store import Admission
from gateway.lib.errors import DomainError
from gateway.web import rate
from gateway.web.gate import Gate
from orgs import membership_check
from orgs.models import Membership, Organization, User


@dataclass(frozen=True, slots=True)
class PassedGate:
    # None for routes without an organization.
    membership: Membership | None
    # The rate limiter's result.
    admission: Admission


def pass_gate(
    request: HttpRequest, user: User, gate: Gate, org_id: str | None, *, among: Sequence[Membership] | None = None
) -> PassedGate:
    """Raises: NotFound, Forbidden, RateLimited, SubscriptionRequired, in this order. Spec: D4-D6, D22"""
    membership = pass_role(request, user, gate, org_id, among=among)
    return PassedGate(membership, pass_limit_and_plan(request, gate, membership))


def pass_role(
    request: HttpRequest, user: User, gate: Gate, org_id: str | None, *, among: Sequence[Membership] | None = None
) -> Membership | None:
    """The membership that the gate requires; None where it names no role. `among`: as of `require_membership`.

    Raises: NotFound, Forbidden.
    """
    if gate.role is None:
        return None
    try:
        return membership_check.require_membership(user, org_id or "", role=gate.role, among=among)
    except DomainError:
        # A refused request counts too, so that a caller cannot try organization ids without end.
        rate.count(request, settings.BACKSTOP)
        raise


def pass_limit_and_plan(request: HttpRequest, gate: Gate, membership: Membership | None) -> Admission:
    """Raises: RateLimited, SubscriptionRequired."""
    admission = rate.count(request, gate.limit or settings.BACKSTOP)
    if membership is not None:
        if gate.organization_limit is not None:
            rate.count_under(gate.organization_limit, f"org:{membership.organization_id}")
        if gate.plan:
            entitlements.require_active(membership.organization)
        if gate.entitlement is not None:
            entitlements.require(membership.organization, gate.entitlement)
    return admission


def is_in_plan(gate: Gate, organization: Organization) -> bool:
    """Whether the gate would not answer 402 now."""
    if gate.plan and not entitlements.is_active(organization):
        return False
    return gate.entitlement is None or entitlements.has(organization, gate.entitlement)
