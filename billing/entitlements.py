"""What an organization may do by its plan. Gates ask here, and nobody looks at a subscription's row instead."""

from __future__ import annotations

from typing import Literal

from django.conf import settings

from billing.errors import SubscriptionRequired
from billing.models import Subscription
from billing.states import PlanState, SubscriptionStatus, plan_state
from gateway.lib import clock
from orgs.models import Organization

_RELATED_NAME = "subscription"
Entitlement = Literal["serviceClients"]


def is_active(organization: Organization) -> bool:
    """Whether the organization's subscription is active; always where nobody bills. Spec: D7, D39, D41"""
    return state(organization) is PlanState.ACTIVE


def state(organization: Organization) -> PlanState:
    """`active` or `lapsed`, now. Spec: D39, D41"""
    return PlanState.ACTIVE if settings.BILLING_MODE == "disabled" else _state_of(_row(organization))


def has(organization: Organization, entitlement: Entitlement) -> bool:
    """Whether the plan, or an exception made for this organization, includes `entitlement`. Spec: D42"""
    if entitlement != "serviceClients":
        raise ValueError(f"unknown entitlement {entitlement!r}")
    row = _row(organization)
    if row is not None and row.service_clients is not None:
        return row.service_clients
    return settings.BILLING_MODE == "disabled" or _state_of(row) is PlanState.ACTIVE


def require_active(organization: Organization) -> None:
    """Return if the subscription is active.

    Raises: SubscriptionRequired.
    """
    if not is_active(organization):
        raise SubscriptionRequired


def require(organization: Organization, entitlement: Entitlement) -> None:
    """Return if the organization has the entitlement.

    Raises: SubscriptionRequired.
    """
    if not has(organization, entitlement):
        raise SubscriptionRequired("The organization's plan does not include service account keys at the moment.")


def _state_of(row: Subscription | None) -> PlanState:
    if row is None:
        return PlanState.LAPSED
    return plan_state(SubscriptionStatus(row.status), row.past_due_since, clock.now())


def _row(organization: Organization) -> Subscription | None:
    loaded = organization._state.fields_cache
    if _RELATED_NAME in loaded:  # a selector brought it along: a list asks for all rows in one query
        row: Subscription | None = loaded[_RELATED_NAME]
        return row
    return Subscription.objects.filter(organization=organization).first()
