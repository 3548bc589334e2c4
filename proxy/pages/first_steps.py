"""The checklist of first steps: one for admins, one for invited members. It ends by itself, and can be hidden."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext

from oauth_ext.selectors import connected_apps, service_clients
from orgs.models import Membership

HIDDEN_COOKIE = "steps_hidden"
HIDDEN_FOR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Step:
    """`key` names the part of the template that helps with it."""

    key: str
    title: str
    is_done: bool
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class FirstSteps:
    steps: tuple[Step, ...]
    is_hidden: bool

    @property
    def done(self) -> int:
        return sum(step.is_done for step in self.steps)

    @property
    def next(self) -> Step | None:
        return next((step for step in self.steps if step.is_next), None)


def admin_steps(membership: Membership, *, has_vendor: bool, has_calls: bool, is_hidden: bool) -> FirstSteps | None:
    """None when all is done. `has_calls`: the organization has made one."""
    organization = membership.organization
    if has_vendor and has_calls:
        return None
    has_client = has_calls or service_clients(organization).exists() or connected_apps(organization).exists()
    return _steps(
        is_hidden,
        ("vendor", gettext("Connect a vendor"), has_vendor),
        ("client", gettext("Connect a client or create an agent"), has_client),
        ("call", gettext("Make the first call"), has_calls),
    )


def member_steps(membership: Membership, *, usable: bool, has_calls: bool, is_hidden: bool) -> FirstSteps | None:
    """None when all is done. `has_calls`: the member has made one."""
    if usable and has_calls:
        return None
    has_client = has_calls or connected_apps(membership.organization, of=membership.user).exists()
    access = ("access", gettext("Get access to a vendor"), usable)
    use = (("client", gettext("Set up a client"), has_client), ("call", gettext("Make your first call"), has_calls))
    # Without a vendor a client has nothing to call.
    return _steps(is_hidden, *((*use, access) if usable else (access, *use)))


def _steps(is_hidden: bool, *steps: tuple[str, str, bool]) -> FirstSteps:
    upcoming = next((key for key, _, is_done in steps if not is_done), None)
    return FirstSteps(tuple(Step(*step, is_next=step[0] == upcoming) for step in steps), is_hidden)


def are_hidden(request: HttpRequest) -> bool:
    return request.COOKIES.get(HIDDEN_COOKIE) == "1"


def hide(answer: HttpResponseBase, membership: Membership, *, hidden: bool) -> None:
    """In this browser, for this organization."""
    path = reverse("proxy_pages:home", args=[membership.organization_id])
    if not hidden:
        answer.delete_cookie(HIDDEN_COOKIE, path=path, samesite="Lax")
        return
    answer.set_cookie(
        HIDDEN_COOKIE,
        "1",
        max_age=HIDDEN_FOR,
        path=path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
