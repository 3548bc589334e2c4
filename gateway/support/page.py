"""Base of the console's pages: who may open them, in which language, and which read is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.views import View

from gateway.lib.rows import required_row
from gateway.support.reading import record_reading
from orgs.models import Organization, User

# Django's own permissions: nothing else gives staff a right in the console.
VIEW = "orgs.view_organization"
ACT = "orgs.change_organization"


class SupportPage(View):
    """A page for staff with the permission `needs`. Staff alone are told that they lack it."""

    http_method_names = ("get", "head", "post")
    needs: ClassVar[tuple[str, ...]] = (VIEW,)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = request.user
        if not isinstance(user, User) or not user.is_staff:
            # The sign-in answers people without support access.
            return redirect(f"{reverse('staff-signin')}?{urlencode({'next': request.path})}")
        if not user.has_perms(self.needs):
            raise PermissionDenied
        # The console is written in English, as the tables beside it.
        with translation.override("en"):
            return super().dispatch(request, *args, **kwargs)

    @property
    def staff(self) -> User:
        if not isinstance(self.request.user, User):
            raise PermissionDenied
        return self.request.user

    @property
    def may_act(self) -> bool:
        return self.staff.has_perm(ACT)

    def read_organization(self, org_id: UUID) -> Organization:
        """The organization, whose log tells that staff have read it. Raises: NotFound."""
        row = required_row(Organization.objects.filter(pk=org_id))
        self.note_reading([row.pk])
        return row

    def note_reading(self, org_ids: Iterable[UUID]) -> None:
        record_reading(staff=self.staff, org_ids=list(org_ids))

    def page(self, template: str, title: str, context: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
        frame = {"page_title": title, "may_act": self.may_act, "sees_tables": self.staff.is_superuser}
        return render(self.request, template, {**frame, **context}, status=status)
