"""A plan in words: its state as a badge, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, pgettext, pgettext_lazy

from billing.selectors import Plan
from billing.states import PlanState, SubscriptionStatus


@dataclass(frozen=True, slots=True)
class PlanWords:
    # The badge: its word, its icon and its tone, which is a class of style sheets.
    word: str | Promise
    icon: str
    tone: str
    meaning: str | Promise


_GOOD, _WARN, _BAD, _NEUTRAL = (
    ("circle-check", "good"),
    ("alert-triangle", "warn"),
    ("circle-x", "bad"),
    ("circle-dashed", "neutral"),
)
_OTHERS = {
    SubscriptionStatus.NONE: PlanWords(
        pgettext_lazy("plan", "no plan"), *_NEUTRAL, gettext_lazy("There is no plan yet.")
    ),
    SubscriptionStatus.INCOMPLETE: PlanWords(
        pgettext_lazy("plan", "not paid yet"), *_WARN, gettext_lazy("The first payment is not complete.")
    ),
    SubscriptionStatus.UNPAID: PlanWords(
        pgettext_lazy("plan", "unpaid"),
        *_BAD,
        gettext_lazy("The last invoice is unpaid. The plan continues as soon as it is paid."),
    ),
    SubscriptionStatus.PAUSED: PlanWords(pgettext_lazy("plan", "paused"), *_WARN, gettext_lazy("The plan is paused.")),
    SubscriptionStatus.CANCELED: PlanWords(pgettext_lazy("plan", "ended"), *_BAD, gettext_lazy("The plan has ended.")),
}


def plan_words(plan: Plan) -> PlanWords:
    if plan.mode == "disabled":
        meaning = gettext("Every organization on this service can use everything.")
        return PlanWords(pgettext("plan", "included"), *_GOOD, meaning)
    match plan.status:
        case SubscriptionStatus.ACTIVE | SubscriptionStatus.TRIALING:
            return _running(plan)
        case SubscriptionStatus.PAST_DUE:
            return _past_due(plan)
        case status:
            return _OTHERS[status]


def _running(plan: Plan) -> PlanWords:
    day = _day(plan.next_date)
    if plan.cancel_at_period_end:
        cancelled = gettext("The plan is canceled.")
        return PlanWords(pgettext("plan", "ends soon"), *_WARN, f"{cancelled} {_works(day)}")
    is_trial = plan.status is SubscriptionStatus.TRIALING
    next_date = ""
    if day and is_trial:
        next_date = gettext("The trial ends and the first payment is due on %(day)s.") % {"day": day}
    elif day:
        next_date = gettext("The next payment is due on %(day)s.") % {"day": day}
    word = pgettext("plan", "trial") if is_trial else pgettext("plan", "active")
    return PlanWords(word, *_GOOD, f"{_works('')} {next_date}".strip())


def _past_due(plan: Plan) -> PlanWords:
    day, word, failed = _day(plan.grace_ends), pgettext("plan", "payment failed"), gettext("The last payment failed.")
    if plan.state is PlanState.LAPSED:
        worked = gettext("Everything worked until %(day)s.") % {"day": day} if day else gettext("Everything worked.")
        goes_on = gettext("The plan continues as soon as the invoice is paid.")
        return PlanWords(word, *_BAD, f"{failed} {worked} {goes_on}")
    return PlanWords(word, *_WARN, f"{failed} {_works(day)}")


def _works(day: str) -> str:
    return gettext("Everything works until %(day)s.") % {"day": day} if day else gettext("Everything works.")


def _day(moment: datetime | None) -> str:
    """For example `3 Nov 2026`, by the day in UTC; "" for None."""
    return date_format(moment, "DATE_FORMAT") if moment else ""
