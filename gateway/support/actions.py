"""The page that asks before staff act: what happens in numbers, the reason, and the button."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from gateway.lib.errors import DomainError, NotFound
from gateway.support.page import ACT, VIEW, SupportPage
from gateway.support.reading import record_reason, staff_actor
from gateway.support.staff_actions import APP_ACTIONS, ORGANIZATION_ACTIONS, PERSON_ACTIONS, Action, OtherStaff
from gateway.web.form_errors import show_on
from oauth_ext.models import TokenFamily
from orgs.models import Membership, Organization, User

# By the variable of the path that names the thing, or the organization that has it.
_ACTIONS = {"org_id": ORGANIZATION_ACTIONS, "user_id": PERSON_ACTIONS, "app_id": APP_ACTIONS}
REASON_MIN_CHARACTERS, REASON_MAX_CHARACTERS = 5, 500


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label="Reason",
        help_text="The organization’s owner reads it in the admin log. Name the ticket.",
        min_length=REASON_MIN_CHARACTERS,
        max_length=REASON_MAX_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class ActionPage(SupportPage):
    """GET, POST .../actions/:action[/:thing]. The reason and the change commit together."""

    needs = (VIEW, ACT)
    action: Action
    thing: Any
    organization: Organization | None

    def get(self, request: HttpRequest, action: str, **path: UUID | str) -> HttpResponse:
        self._find(action, **path)
        return self._show(ReasonForm())

    def post(self, request: HttpRequest, action: str, **path: UUID | str) -> HttpResponse:
        self._find(action, **path)
        form = ReasonForm(request.POST)
        if not form.is_valid():
            return self._show(form, status=422)
        try:
            self._act(form.cleaned_data["reason"])
        except NotFound:
            raise
        except DomainError as refusal:
            show_on(form, refusal)
            return self._show(form, status=refusal.status)
        messages.success(request, f"{self.action.title}: done for {self.action.target(self.thing).label}.")
        return redirect(self._back())

    def _find(self, action: str, **path: Any) -> None:
        kind, actions = next((name, actions) for name, actions in _ACTIONS.items() if name in path)
        found = actions.get(action)
        if found is None or not found.is_open():
            raise NotFound
        self.action, self.organization = found, None
        if "org_id" in path:
            self.organization = self.read_organization(path["org_id"])
        self.thing = found.load(self.organization, str(path.get("thing", path[kind])))
        if self.organization is None:
            self.note_reading(self._organizations())

    def _organizations(self) -> list[UUID]:
        """The organizations whose log tells the reason."""
        if self.organization is not None:
            return [self.organization.pk]
        rows = (
            Membership.objects.filter(user=self.thing)
            if isinstance(self.thing, User)
            else TokenFamily.objects.filter(client=self.thing)
        )
        return list(rows.order_by("organization_id").values_list("organization_id", flat=True).distinct())

    @transaction.atomic
    def _act(self, reason: str) -> None:
        actor, target = staff_actor(self.staff), self.action.target(self.thing)
        if isinstance(self.thing, User) and self.thing.is_staff and not self.staff.is_superuser:
            raise OtherStaff
        told = self._organizations()
        self.action.run(actor, self.thing)
        for org_id in told:
            record_reason(actor=actor, org_id=org_id, target=target, action=self.action.title, reason=reason)

    def _back(self) -> str:
        if self.organization is not None:
            return reverse("support:organization", args=[self.organization.pk])
        if isinstance(self.thing, User):
            return reverse("support:person", args=[self.thing.pk])
        return reverse("support-search")

    def _show(self, form: ReasonForm, *, status: int = 200) -> HttpResponse:
        context = {
            "action": self.action,
            "label": self.action.target(self.thing).label,
            "consequences": list(self.action.consequences(self.thing)),
            "organization": self.organization,
            "form": form,
            "back": self._back(),
        }
        return self.page("support/action.html", self.action.title, context, status=status)
