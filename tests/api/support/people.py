"""Browsers of support staff with each of the rights."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client as Browser
from django.urls import reverse

from audit.models import AdminAuditEntry
from orgs.models import Organization, User
from tests.factories.cast import Cast, make_person

VIEW, ACT = "view_organization", "change_organization"


def staff_person(*codenames: str, name: str = "support", superuser: bool = False) -> User:
    person = make_person(name)
    person.is_staff, person.is_superuser = True, superuser
    person.save()
    person.user_permissions.set(Permission.objects.filter(content_type__app_label="orgs", codename__in=codenames))
    return person


def browser_of(person: User) -> Browser:
    return Cast(None, None, {"staff": person}).client("staff")  # type: ignore[arg-type]


def staff_browser(*codenames: str, superuser: bool = False) -> Browser:
    return browser_of(staff_person(*codenames, superuser=superuser))


REASON = "Ticket 4711"


def act(browser: Browser, action: str, thing: Any, organization: Organization | None = None, **form: str) -> Any:
    """Send the question of an action, as its page does; of a person or an app without an organization."""
    if organization is not None:
        address = reverse("support:action", args=[organization.pk, action, thing.pk])
    else:
        kind = "person" if isinstance(thing, User) else "app"
        address = reverse(f"support:{kind}-action", args=[thing.pk, action])
    return browser.post(address, {"reason": REASON, **form})


def reasons(organization: Organization) -> list[tuple[str, str, str]]:
    """(actor, action, reason) in the log of the organization."""
    rows = AdminAuditEntry.objects.filter(org_id=organization.id, event_type="support.acted").order_by("id")
    return [(row.actor_label, row.metadata["action"], row.metadata["reason"]) for row in rows]
