"""The notice on an organization's pages while something is wrong with its plan. Spec: D6, D7, D39"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from billing.links import renewal_url
from billing.selectors import Plan
from billing.states import OWING, PlanState, SubscriptionStatus
from orgs import selectors
from orgs.models import Membership
from orgs.roles import Role

_NEW = {SubscriptionStatus.NONE, SubscriptionStatus.INCOMPLETE}


@dataclass(frozen=True, slots=True)
class Remedy:
    """How an owner mends a plan."""

    button: str
    # The beginning of a sentence that ends with the owners' names.
    of_owners: str


@dataclass(frozen=True, slots=True)
class PlanNotice:
    """A plan that has lapsed, or one whose payment failed and that holds until `grace_ends`."""

    has_lapsed: bool
    # No first payment is complete.
    is_new: bool
    grace_ends: datetime | None
    remedy: Remedy
    # Where an owner does so; "" where operators set the plan, and for everybody else.
    url: str
    # Names of owners, for everybody else.
    owners: Sequence[str]


def plan_notice(membership: Membership, plan: Plan | None) -> PlanNotice | None:
    """None while all is well. `plan`: None where billing is disabled."""
    if plan is None:
        return None
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


def _remedy(plan: Plan) -> Remedy:
    if plan.mode == "stripe" and plan.status in _NEW:
        return Remedy(gettext("Subscribe"), gettext("An owner can subscribe"))
    if plan.mode == "stripe" and plan.status in OWING:
        return Remedy(gettext("Update the payment method"), gettext("An owner can update the payment method"))
    return Remedy(gettext("Renew it"), gettext("An owner can renew it"))
