"""Pure: the payment provider's subscription states, reduced to active or lapsed. Spec: D39"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

# The provider retries a failed payment for about a week; a customer whose card expired keeps working meanwhile.
PAST_DUE_GRACE = timedelta(days=7)


class SubscriptionStatus(StrEnum):
    """The provider's states, and `none` for an organization that never subscribed."""

    NONE = "none"
    INCOMPLETE = "incomplete"
    TRIALING = "trialing"
    ACTIVE = "active"
    PAST_DUE = "past_due"
    UNPAID = "unpaid"
    CANCELED = "canceled"
    PAUSED = "paused"


PAID = frozenset({SubscriptionStatus.ACTIVE, SubscriptionStatus.TRIALING})
# A customer who owes for one of these pays at the provider: a second subscription would be charged beside it.
OWING = frozenset({SubscriptionStatus.PAST_DUE, SubscriptionStatus.UNPAID})


class PlanState(StrEnum):
    """The two states that the API and the pages show."""

    ACTIVE = "active"
    LAPSED = "lapsed"


def plan_state(status: SubscriptionStatus, past_due_since: datetime | None, now: datetime) -> PlanState:
    """Active in trial, when paid, and during PAST_DUE_GRACE. Spec: D39"""
    if status in PAID:
        return PlanState.ACTIVE
    in_grace = past_due_since is not None and now - past_due_since <= PAST_DUE_GRACE
    return PlanState.ACTIVE if status is SubscriptionStatus.PAST_DUE and in_grace else PlanState.LAPSED


def grace_ends(status: SubscriptionStatus, past_due_since: datetime | None) -> datetime | None:
    """The last moment of PAST_DUE_GRACE, while it counts."""
    if status is not SubscriptionStatus.PAST_DUE or past_due_since is None:
        return None
    return past_due_since + PAST_DUE_GRACE
