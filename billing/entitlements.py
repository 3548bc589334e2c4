"""The functions that a plan allows now. Every gate asks here; none reads a subscription's row. Spec: D7, D39, D41"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.conf import settings

from billing.errors import SubscriptionRequired
from billing.links import renewal_url
from billing.models import Subscription
from billing.states import PlanState, SubscriptionStatus, plan_state
from gateway.lib import clock
from gateway.lib.sentences import sentence
from orgs.models import Organization

_RELATED_NAME = "subscription"
Entitlement = Literal["serviceClients"]


def is_active(organization: Organization) -> bool:
    return state(organization) is PlanState.ACTIVE


def state(organization: Organization) -> PlanState:
    # Without a question to the database where billing is disabled.
    return PlanState.ACTIVE if settings.BILLING_MODE == "disabled" else state_of_row(_row(organization))


def has(organization: Organization, entitlement: Entitlement) -> bool:
    """Whether the plan, or the organization's exception, includes `entitlement`. Raises: ValueError. Spec: D42"""
    if entitlement != "serviceClients":
        raise ValueError(f"unknown entitlement {entitlement!r}")
    row = _row(organization)
    # An exception made for one organization counts before the plan.
    if row is not None and row.service_clients is not None:
        return row.service_clients
    return state_of_row(row) is PlanState.ACTIVE


def require_active(organization: Organization) -> None:
    """Raises: SubscriptionRequired."""
    if not is_active(organization):
        raise _refusal(organization)


def require(organization: Organization, entitlement: Entitlement) -> None:
    """Raises: SubscriptionRequired."""
    if not has(organization, entitlement):
        raise _refusal(organization, sentence("The organization’s plan does not currently include agent keys."))


def state_of_row(row: Subscription | None, now: datetime | None = None) -> PlanState:
    """The state by the clock, so that a grace period ends in every process at the same moment."""
    # Every organization is active where billing is disabled.
    if settings.BILLING_MODE == "disabled":
        return PlanState.ACTIVE
    if row is None:
        return PlanState.LAPSED
    return plan_state(SubscriptionStatus(row.status), row.past_due_since, now or clock.now())


def _refusal(organization: Organization, message: str | None = None) -> SubscriptionRequired:
    refusal = SubscriptionRequired(message)
    refusal.portal_url = renewal_url(organization.pk)
    return refusal


def _row(organization: Organization) -> Subscription | None:
    loaded = organization._state.fields_cache
    # A list loads the rows of all its organizations in one query (select_related).
    if _RELATED_NAME in loaded:
        row: Subscription | None = loaded[_RELATED_NAME]
        return row
    return Subscription.objects.filter(organization=organization).first()
