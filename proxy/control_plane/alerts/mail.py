"""Alerts by e-mail: to owners and admins, each of whom can unsubscribe from those of one organization."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.utils.functional import lazy
from django.utils.translation import gettext_lazy

from gateway.mail.kinds import Facts, MailKind, Purpose, register
from gateway.mail.outbox import unlinked
from orgs.alert_terms import OF_OWNERS, AlertKind, Moment
from orgs.models import Organization
from orgs.notices import has_role_by_address
from orgs.roles import Role
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
        # They hold names of anybody's choice, and what a log platform answered.
        "headline": _lazily(lambda: unlinked(words.headline(told))),
        "detail": _lazily(lambda: unlinked(words.detail(told))),
        "page": words.page_of(UUID(stored["org_id"]), kind, stored["cause"]),
        "kind_name": words.NAMES[kind],
    }


def _lazily(make: Callable[[], str]) -> object:
    return lazy(make, str)()


def is_still_for(address: str, organization_id: UUID | None, stored: Facts) -> bool:
    """Whether the recipient is still one of those whom the alert is told to."""
    of_owners = stored.get("kind") in OF_OWNERS
    return has_role_by_address(address, organization_id, [Role.OWNER] if of_owners else [Role.OWNER, Role.ADMIN])


ALERT = register(
    MailKind(
        name="alert",
        purpose=Purpose.OPTIONAL,
        label=gettext_lazy("Alerts"),
        subject=gettext_lazy("%(headline)s (%(organization)s)"),
        facts_at_sending=in_words,
        is_still_for=is_still_for,
        is_per_organization=True,
    )
)
