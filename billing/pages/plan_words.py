"""A plan in words: its state as a badge, and what it means."""

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


_GOOD, _WARN, _BAD, _NEUTRAL = (
    ("circle-check", "good"),
    ("alert-triangle", "warn"),
    ("circle-x", "bad"),
    ("circle-dashed", "neutral"),
)
_OTHERS = {
    SubscriptionStatus.NONE: PlanWords("no plan", *_NEUTRAL, "There is no plan yet."),
    SubscriptionStatus.INCOMPLETE: PlanWords("not paid yet", *_WARN, "The first payment is not complete."),
    SubscriptionStatus.UNPAID: PlanWords(
        "unpaid", *_BAD, "The last invoice is not paid. The plan goes on as soon as it is paid."
    ),
    SubscriptionStatus.PAUSED: PlanWords("paused", *_WARN, "The plan is paused."),
    SubscriptionStatus.CANCELED: PlanWords("ended", *_BAD, "The plan has ended."),
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
            return _OTHERS[status]


def _running(plan: Plan) -> PlanWords:
    is_trial = plan.status is SubscriptionStatus.TRIALING
    if plan.cancel_at_period_end:
        return PlanWords("ends soon", *_WARN, f"The plan is cancelled. Everything works{_on('until', plan.next_date)}.")
    name = "The trial ends and the first payment is" if is_trial else "The next payment is"
    next_date = f" {name}{_on('on', plan.next_date)}." if plan.next_date else ""
    return PlanWords("trial" if is_trial else "active", *_GOOD, f"Everything works.{next_date}")


def _past_due(plan: Plan) -> PlanWords:
    if plan.state is PlanState.LAPSED:
        text = f"The last payment failed. Everything worked{_on('until', plan.grace_ends)}."
        return PlanWords("payment failed", *_BAD, f"{text} The plan goes on as soon as the invoice is paid.")
    text = f"The last payment failed. Everything works{_on('until', plan.grace_ends)}."
    return PlanWords("payment failed", *_WARN, text)


def _on(word: str, moment: datetime | None) -> str:
    """For example ` until 3 Nov 2026`, by the day in UTC."""
    return f" {word} {format_date(moment, 'j M Y')}" if moment else ""
