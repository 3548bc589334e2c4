"""An alert in words of the reader's language: its headline, what helps, and the page that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from gateway.lib.translated import translated
from orgs.alert_terms import EXPIRY_DAYS, AlertKind, Moment
from proxy.control_plane.alerts.facts import DELETED, DISCONNECTED, EXTENDED, PAUSED, SIGN_IN_NEEDED
from proxy.control_plane.health.words import in_words

NAMES: Mapping[AlertKind, str | Promise] = {
    AlertKind.VENDOR_DOWN: gettext_lazy("A vendor doesn’t respond"),
    AlertKind.CREDENTIAL_REJECTED: gettext_lazy("A vendor rejects credentials"),
    AlertKind.AGENT_EXPIRING: gettext_lazy("An agent and its key expire"),
    AlertKind.TOOLS_CHANGED: gettext_lazy("A vendor changes its tools"),
    AlertKind.ERROR_SPIKE: gettext_lazy("Many calls fail"),
    AlertKind.LOG_SHIPPING_FAILING: gettext_lazy("Log shipping fails"),
    AlertKind.PLAN_PAST_DUE: gettext_lazy("A payment for the plan failed"),
}
EXPLAINED: Mapping[AlertKind, str | Promise] = {
    AlertKind.VENDOR_DOWN: gettext_lazy("After three failed checks in a row."),
    AlertKind.CREDENTIAL_REJECTED: gettext_lazy("During a call or a check."),
    AlertKind.AGENT_EXPIRING: gettext_lazy("14 days, 3 days and 1 day before."),
    AlertKind.TOOLS_CHANGED: gettext_lazy("New, changed or removed tools wait for a review."),
    AlertKind.ERROR_SPIKE: gettext_lazy(
        "At least 20 failed calls to one vendor within 10 minutes, and at least a quarter of all its calls."
    ),
    AlertKind.LOG_SHIPPING_FAILING: gettext_lazy("A destination refuses records, or fails for 5 minutes."),
    AlertKind.PLAN_PAST_DUE: gettext_lazy("Owners only."),
}
_PAGES: Mapping[AlertKind, str] = {
    AlertKind.VENDOR_DOWN: "vendors/{cause}",
    AlertKind.CREDENTIAL_REJECTED: "vendors",
    AlertKind.AGENT_EXPIRING: "agents/{cause}/settings",
    AlertKind.TOOLS_CHANGED: "vendors/{cause}/tools",
    AlertKind.ERROR_SPIKE: "vendors/{cause}/activity",
    AlertKind.LOG_SHIPPING_FAILING: "log-shipping/{cause}",
    AlertKind.PLAN_PAST_DUE: "billing",
}


@dataclass(frozen=True, slots=True)
class Told:
    """The facts of one message, or of an alert as a page shows it."""

    kind: AlertKind
    moment: Moment
    label: str
    detail: str
    level: int


def headline(told: Told) -> str:
    """One sentence without its period."""
    name = {"name": told.label}
    if told.moment is Moment.END:
        return _end(told) % name
    match told.kind:
        case AlertKind.VENDOR_DOWN:
            return gettext("%(name)s isn’t responding") % name
        case AlertKind.CREDENTIAL_REJECTED:
            return gettext("%(name)s rejects the stored credentials") % name
        case AlertKind.AGENT_EXPIRING:
            return _expiry(told)
        case AlertKind.TOOLS_CHANGED:
            return gettext("%(name)s has changed its tools") % name
        case AlertKind.ERROR_SPIKE:
            return gettext("Many calls to %(name)s are failing") % name
        case AlertKind.LOG_SHIPPING_FAILING:
            return gettext("Log shipping to %(name)s is failing") % name
    return gettext("The plan has ended") if told.level > 1 else gettext("The last payment for the plan failed")


def _end(told: Told) -> str:
    match told.kind:
        case AlertKind.VENDOR_DOWN:
            return _disconnected_or(told, gettext("%(name)s is responding again"))
        case AlertKind.CREDENTIAL_REJECTED:
            if told.detail == DELETED:
                return gettext("The rejected credentials for %(name)s were deleted")
            return gettext("%(name)s accepts the stored credentials again")
        case AlertKind.AGENT_EXPIRING:
            if told.detail == EXTENDED:
                return gettext("The agent %(name)s was extended")
            if told.detail == DELETED:
                return gettext("The agent %(name)s was deleted")
            return gettext("The agent %(name)s and its key have expired")
        case AlertKind.TOOLS_CHANGED:
            return _disconnected_or(told, gettext("No more tool changes at %(name)s are waiting for review"))
        case AlertKind.ERROR_SPIKE:
            return gettext("Calls to %(name)s are no longer failing in large numbers")
        case AlertKind.LOG_SHIPPING_FAILING:
            if told.detail == DELETED:
                return gettext("The log destination %(name)s was deleted")
            if told.detail == PAUSED:
                return gettext("Log shipping to %(name)s was paused")
            return gettext("Log shipping to %(name)s is working again")
    return gettext("The plan is paid")


def _disconnected_or(told: Told, text: str) -> str:
    return gettext("%(name)s was disconnected") if told.detail == DISCONNECTED else text


def _expiry(told: Told) -> str:
    days = EXPIRY_DAYS[min(told.level, len(EXPIRY_DAYS)) - 1]
    text = ngettext(
        "The agent %(name)s and its key expire within %(days)s day",
        "The agent %(name)s and its key expire within %(days)s days",
        days,
    )
    return text % {"name": told.label, "days": days}


def detail(told: Told) -> str:
    """More about the cause; empty at the end, and where there is nothing to add."""
    if told.moment is Moment.END or not told.detail:
        return ""
    match told.kind:
        case AlertKind.VENDOR_DOWN:
            return translated(in_words(told.detail))
        case AlertKind.CREDENTIAL_REJECTED:
            if told.detail == SIGN_IN_NEEDED:
                return gettext("The vendor no longer renews the connection. Sign in there again.")
            return gettext("The credentials of %(holder)s.") % {"holder": told.detail}
        case AlertKind.AGENT_EXPIRING:
            moment = date_format(date.fromisoformat(told.detail), "DATE_FORMAT")
            return gettext("The last day is %(day)s.") % {"day": moment}
        case AlertKind.TOOLS_CHANGED:
            count = int(told.detail)
            text = ngettext("%(count)s change waits for a review.", "%(count)s changes wait for a review.", count)
            return text % {"count": count}
        case AlertKind.ERROR_SPIKE:
            failed, _, calls = told.detail.partition("/")
            return gettext("%(failed)s of %(calls)s calls failed within 10 minutes.") % {
                "failed": failed,
                "calls": calls,
            }
    return told.detail


def page_of(org_id: UUID, kind: AlertKind, cause: str) -> str:
    """The address of the page where it is settled. The worker does without the URL configuration."""
    path = _PAGES[kind].format(cause=quote(cause, safe=""))
    return f"{settings.BASE_URL}/orgs/{org_id}/{path}"
