"""A plan in words: its state as a badge, what it means, the next date, and which buttons help."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.dateformat import format as format_date

from billing.selectors import Plan
from billing.states import PlanState, SubscriptionStatus


@dataclass(frozen=True, slots=True)
class PlanWords:
    # The badge: its word, its icon and its tone, which is a class of style sheets.
    word: str
    icon: str
    tone: str
    meaning: str
    # The next date, with its name; None without one.
    date: datetime | None = None
    date_name: str = ""


_GOOD, _WARN, _BAD, _NEUTRAL = (
    ("circle-check", "good"),
    ("alert-triangle", "warn"),
    ("circle-x", "bad"),
    ("circle-dashed", "neutral"),
)
_UNPAID = "The last invoice is not paid. The plan goes on as soon as it is."
_WITHOUT_DATES = {
    SubscriptionStatus.NONE: ("no plan", *_NEUTRAL, "There is no plan yet."),
    SubscriptionStatus.INCOMPLETE: ("not paid yet", *_WARN, "The first payment is not complete."),
    SubscriptionStatus.UNPAID: ("unpaid", *_BAD, _UNPAID),
    SubscriptionStatus.PAUSED: ("paused", *_WARN, "The plan is paused until a payment method is added."),
    SubscriptionStatus.CANCELED: ("ended", *_BAD, "The plan has ended."),
}


def plan_words(plan: Plan) -> PlanWords:
    if plan.mode == "disabled":
        return PlanWords("included", *_GOOD, "Every organization of this service can use everything.")
    match plan.status:
        case SubscriptionStatus.ACTIVE | SubscriptionStatus.TRIALING:
            return _running(plan)
        case SubscriptionStatus.PAST_DUE:
            return _past_due(plan)
        case status:
            return PlanWords(*_WITHOUT_DATES[status])


def _running(plan: Plan) -> PlanWords:
    word, name = "active", "Next payment"
    if plan.status is SubscriptionStatus.TRIALING:
        word, name = "trial", "Trial ends, first payment"
    if plan.cancel_at_period_end:
        text = "The plan is cancelled. Everything works until it ends."
        return PlanWords("ends soon", *_WARN, text, plan.next_date, "Ends")
    return PlanWords(word, *_GOOD, "Everything works.", plan.next_date, name if plan.next_date else "")


def _past_due(plan: Plan) -> PlanWords:
    ends = plan.grace_ends
    if plan.state is PlanState.LAPSED:
        return PlanWords("payment failed", *_BAD, _UNPAID, ends, "Worked until")
    on = f" until {format_date(ends, 'j M Y')}" if ends else ""
    text = f"The last payment failed. Everything works{on}."
    return PlanWords("payment failed", *_WARN, text, ends, "Works until")
