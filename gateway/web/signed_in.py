"""The signed-in user of a request, and the base of that person's pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import View

from orgs.models import User
from orgs.selectors import memberships


def signed_in(request: HttpRequest) -> User:
    """Raises: PermissionDenied for an anonymous request: a page without its own sign-in check stays closed."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


class SignedInPage(LoginRequiredMixin, View):
    """A page of one person. Other people are sent to sign in."""

    http_method_names = ["get", "head", "post"]
    title: ClassVar[str]

    @property
    def actor(self) -> User:
        return signed_in(self.request)

    def frame(self) -> dict[str, Any]:
        """Context of the base template."""
        return {"memberships": memberships(self.actor), "page_title": self.title}

    def page(self, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
        return render(self.request, template, {**self.frame(), **(context or {})}, status=status)
