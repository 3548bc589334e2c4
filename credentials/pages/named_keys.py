"""Named keys of a vendor: add, replace, rename, assign to a team."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from credentials.credential_scope import CredentialScope
from credentials.errors import KeyNameTaken, TeamHasKey
from credentials.pages.credential import VendorFieldsPage
from credentials.pages.forms import CredentialForm
from credentials.rejections import SummaryWithRejection
from credentials.services.keys import update_named_key
from gateway.lib import ids
from gateway.lib.errors import DomainError, Invalid, NotFound
from gateway.lib.text import NAME_MAX_CHARACTERS
from gateway.lib.translated import translated
from gateway.web import undo
from gateway.web.gate import Gate, PlanFunction
from gateway.web.navigation import VENDOR_TABS
from orgs import selectors as orgs
from orgs.roles import Role
from proxy.control_plane.connect_vendor import Connected, connect_vendor, replace_key

NAME, TEAM = "key_name", "key_team"


def _name_field() -> forms.CharField:
    return forms.CharField(
        label=gettext("Name"),
        max_length=NAME_MAX_CHARACTERS,
        help_text=gettext("Shown in lists and in the log, for example “EU reporting”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


def _team_field(teams: list[tuple[str, str]]) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=gettext("Team"),
        required=False,
        choices=[("", gettext("No team")), *teams],
        help_text=gettext("This team’s calls use the key instead of the organization’s credentials."),
    )


class BindingForm(forms.Form):
    """The name of a key, and its team."""

    def __init__(self, teams: list[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[NAME], self.fields[TEAM] = _name_field(), _team_field(teams)


class NewKeyForm(CredentialForm):
    def __init__(self, vendor: Any, teams: list[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        super().__init__(vendor, *args, **kwargs)
        self.fields = {NAME: _name_field(), TEAM: _team_field(teams), **self.fields}

    def values(self) -> dict[str, str]:
        return {name: value for name, value in super().values().items() if name not in (NAME, TEAM)}


def _show_on(form: forms.Form, refusal: DomainError) -> bool:
    """Whether the refusal concerns the name or the team."""
    match refusal:
        case KeyNameTaken():
            form.add_error(NAME, translated(refusal.message))
        case TeamHasKey():
            form.add_error(TEAM, translated(refusal.message))
        case Invalid() if "name" in refusal.fields:
            form.add_error(NAME, [translated(text) for text in refusal.fields["name"]])
        case _:
            return False
    return True


class _KeyPage(VendorFieldsPage):
    nav_route = "proxy_pages:vendors"
    tabs = VENDOR_TABS
    tab_route = "credentials:connection"

    def tab_ids(self) -> tuple[object, ...]:
        return (self.kwargs["vendor"],)

    @property
    def back(self) -> str:
        return reverse("credentials:connection", args=[self.organization.id, self.vendor.slug])

    def _teams(self, own: UUID | None = None) -> list[tuple[str, str]]:
        """The teams that no other key of the vendor serves."""
        taken = {row.team_id for row in self.rows if row.scope is CredentialScope.NAMED_KEY} - {own}
        return [(str(team.pk), team.name) for team in orgs.teams(self.organization) if team.pk not in taken]


class NewKeyPage(_KeyPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/keys/new. Spec: D65, D153"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_KEY_CREATE),
    }
    title = gettext_lazy("Add a key")
    template = "credentials/key_new.html"
    accepted = gettext_lazy("The key is saved and verified.")
    unchecked = gettext_lazy("The key is saved, but we couldn’t verify it: %(detail)s")
    stored = None

    def new_form(self, data: QueryDict | None = None) -> CredentialForm:
        return NewKeyForm(self.vendor, self._teams(), data)

    def store(self, form: CredentialForm, *, anyway: bool) -> Connected:
        chosen = form.cleaned_data[TEAM]
        return connect_vendor(
            actor=self.actor,
            organization=self.organization,
            vendor=self.vendor,
            fields=form.values(),
            scope=CredentialScope.NAMED_KEY,
            team=orgs.team(self.organization, chosen) if chosen else None,
            name=form.cleaned_data[NAME],
        )

    def save(self, form: CredentialForm) -> HttpResponse:
        try:
            return super().save(form)
        except (KeyNameTaken, TeamHasKey, Invalid) as refusal:
            if not _show_on(form, refusal):
                raise
            return self.show(form, status=422)


class KeyPage(_KeyPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/keys/:keyId. Spec: D65, D153, D170"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE),
        "POST update": Gate(Role.ADMIN),
    }
    title = gettext_lazy("Key")
    template = "credentials/key.html"
    accepted = gettext_lazy("The key was replaced. %(vendor)s accepted the new one.")
    unchecked = gettext_lazy("The key was replaced, but we couldn’t verify it: %(detail)s")

    @cached_property
    def key(self) -> SummaryWithRejection:
        """Raises: NotFound."""
        keys = (row for row in self.rows if row.scope is CredentialScope.NAMED_KEY)
        found = next((row for row in keys if row.id == self.kwargs["key_id"]), None)
        if found is None:
            raise NotFound
        return found

    @property
    def stored(self) -> SummaryWithRejection:
        return self.key

    @property
    def binding(self) -> dict[str, str]:
        return {NAME: self.key.name, TEAM: str(self.key.team_id or "")}

    def store(self, form: CredentialForm, *, anyway: bool) -> Connected:
        return replace_key(
            actor=self.actor,
            organization=self.organization,
            vendor=self.vendor,
            key_id=self.key.id,
            fields=form.values(),
            anyway=anyway,
        )

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        if request.POST.get("action") == "update":
            return self._update(BindingForm(self._teams(self.key.team_id), request.POST))
        return super().post(request, **path)

    def _update(self, form: BindingForm) -> HttpResponse:
        if not form.is_valid():
            return self.show(self.new_form(), status=422, binding_form=form)
        former, chosen = self.binding, form.cleaned_data[TEAM]
        try:
            changed = update_named_key(
                actor=self.actor,
                organization=self.organization,
                key_id=self.key.id,
                vendor=self.vendor.slug,
                name=form.cleaned_data[NAME],
                team_id=ids.known_id(chosen) if chosen else None,
            )
        except (KeyNameTaken, TeamHasKey, Invalid) as refusal:
            if not _show_on(form, refusal):
                raise
            return self.show(self.new_form(), status=422, binding_form=form)
        if former == {NAME: changed.name, TEAM: str(changed.team_id or "")}:
            messages.info(self.request, gettext("Nothing changed."))
        else:
            undo.offer(self.request, gettext("The key is saved."), {"action": "update", **former})
        return redirect(self.request.path)

    def show(self, form: CredentialForm, *, status: int = 200, **extra: Any) -> HttpResponse:
        extra.setdefault("binding_form", BindingForm(self._teams(self.key.team_id), initial=self.binding))
        return super().show(form, status=status, **extra)

    def context(self) -> dict[str, Any]:
        return {**super().context(), "undo": undo.take(self.request)}
