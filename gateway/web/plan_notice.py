"""The notice on an organization's pages while something is wrong with its plan. Spec: D6, D7, D39"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from billing.links import renewal_url
from billing.selectors import Plan, plan_of
from billing.states import OWING, PlanState, SubscriptionStatus
from orgs import selectors
from orgs.models import Membership
from orgs.roles import Role

_NEW = {SubscriptionStatus.NONE, SubscriptionStatus.INCOMPLETE}


@dataclass(frozen=True, slots=True)
class PlanNotice:
    """A plan that has lapsed, or one whose payment failed and that holds until `grace_ends`."""

    has_lapsed: bool
    # No first payment is complete.
    is_new: bool
    grace_ends: datetime | None
    # How an owner mends it, as a part of a sentence.
    remedy: str
    # Where an owner does so; "" where operators set the plan, and for everybody else.
    url: str
    # Names of owners, for everybody else.
    owners: Sequence[str]


def plan_notice(membership: Membership) -> PlanNotice | None:
    """None while all is well."""
    if settings.BILLING_MODE == "disabled":
        return None
    plan = plan_of(membership.organization)
    has_lapsed = plan.state is PlanState.LAPSED
    if not has_lapsed and plan.status is not SubscriptionStatus.PAST_DUE:
        return None
    is_owner = membership.has_role(Role.OWNER)
    return PlanNotice(
        has_lapsed=has_lapsed,
        is_new=plan.status in _NEW,
        grace_ends=plan.grace_ends,
        remedy=_remedy(plan),
        url=renewal_url(membership.organization_id) if is_owner else "",
        owners=() if is_owner else selectors.people_who_may(membership.organization, Role.OWNER),
    )


def _remedy(plan: Plan) -> str:
    if plan.mode == "stripe" and plan.status in _NEW:
        return "subscribe"
    if plan.mode == "stripe" and plan.status in OWING:
        return "update the payment method"
    return "renew it"
