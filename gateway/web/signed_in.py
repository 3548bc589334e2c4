"""The signed-in user of a request, and the base of that person's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise, cached_property
from django.views import View

from gateway.lib.errors import MethodNotAllowed
from gateway.status.open_incidents import OpenIncident
from gateway.web.incident_notice import incident_notice, open_now, touching_everyone
from orgs.models import User
from orgs.selectors import memberships


def signed_in(request: HttpRequest) -> User:
    """Raises: PermissionDenied for an anonymous request: a page without its own sign-in check stays closed."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def is_by_htmx(request: HttpRequest) -> bool:
    """Whether a script asks for a part of the page, and not the browser for all of it."""
    return bool(request.headers.get("HX-Request"))


def load_whole_page() -> HttpResponse:
    """The answer to HTMX after which the browser loads the page again."""
    return HttpResponse(status=204, headers={"HX-Refresh": "true"})


class SignedInPage(LoginRequiredMixin, View):
    """A page of one person. Other people are sent to sign in."""

    http_method_names = ["get", "head", "post"]
    title: ClassVar[str | Promise]

    @property
    def actor(self) -> User:
        return signed_in(self.request)

    def frame(self) -> dict[str, Any]:
        """Context of the base template."""
        return {
            "memberships": memberships(self.actor),
            "page_title": self.title,
            "incident_notice": incident_notice(self.incidents),
        }

    @cached_property
    def incidents(self) -> Sequence[OpenIncident]:
        """The open ones that touch everyone."""
        return touching_everyone(open_now())

    def handle_no_permission(self) -> HttpResponse:  # type: ignore[override]
        # After the session's end the sign-in page would land inside a part of the page.
        return load_whole_page() if is_by_htmx(self.request) else super().handle_no_permission()

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> NoReturn:
        """An address that only buttons send to is opened too: a browser has no words of its own for an empty answer."""
        raise MethodNotAllowed(super().http_method_not_allowed(request, *args, **kwargs)["Allow"])

    def page(self, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
        return render(self.request, template, {**self.frame(), **(context or {})}, status=status)
