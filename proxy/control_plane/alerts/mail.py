"""Alerts by e-mail: to owners and admins, each of whom can unsubscribe from those of one organization."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.utils.functional import lazy
from django.utils.translation import gettext_lazy

from gateway.mail.kinds import Facts, MailKind, Purpose, register
from orgs.alert_terms import AlertKind, Moment
from orgs.models import Organization
from proxy.control_plane.alerts import words


def in_words(stored: Facts) -> Facts | None:
    """The words, which are made in the recipient's language when the message is rendered.

    None: the organization was deleted while the message waited.
    """
    if not Organization.objects.filter(pk=stored["org_id"]).exists():
        return None
    if stored["moment"] == Moment.TEST:
        return {"headline": gettext_lazy("This is a test alert"), "detail": "", "page": "", "kind_name": ""}
    kind = AlertKind(stored["kind"])
    told = words.Told(kind, Moment(stored["moment"]), stored["label"], stored["detail"], stored["level"])
    return {
        "headline": _lazily(partial(words.headline, told)),
        "detail": _lazily(partial(words.detail, told)),
        "page": words.page_of(UUID(stored["org_id"]), kind, stored["cause"]),
        "kind_name": words.NAMES[kind],
    }


def _lazily(make: partial[str]) -> object:
    return lazy(make, str)()


ALERT = register(
    MailKind(
        name="alert",
        purpose=Purpose.OPTIONAL,
        label=gettext_lazy("Alerts"),
        subject=gettext_lazy("%(headline)s (%(organization)s)"),
        facts_at_sending=in_words,
        is_per_organization=True,
    )
)
