"""One team: its name, members, server access and credentials."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property

from credentials.credential_scope import CredentialScope
from credentials.errors import TeamHasKey
from credentials.rejections import summaries_with_rejection
from credentials.selectors import CredentialSummary, credential_summaries, people_vendors
from credentials.services.keys import update_named_key
from gateway.catalog import registry
from gateway.lib import ids
from gateway.lib.errors import NotFound
from gateway.web import undo
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.paging import page_of
from gateway.web.search import search_words
from orgs import selectors
from orgs.models import ServerAccess, Team
from orgs.pages.teams import TeamForm
from orgs.roles import Role
from orgs.services.server_access import add_team_vendor, remove_team_vendor
from orgs.services.teams import add_team_member, remove_team_member, rename_team

# Names in the list for adding a member; a search narrows it.
MAX_CANDIDATES = 200


class TeamPage(OrgFormPage[TeamForm]):
    """GET, POST /orgs/:orgId/teams/:teamId. Each button is a form with an `action` of its own.

    Spec: §4.5-§4.7 · D59-D61, D65
    """

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Team"
    nav_route = "orgs:teams"
    form_class = TeamForm
    template = "orgs/team.html"

    @cached_property
    def team(self) -> Team:
        return selectors.team(self.organization, str(self.kwargs["team_id"]))

    @property
    def _subject(self) -> dict[str, Any]:
        """Arguments that each service for a team takes."""
        return {"actor": self.actor, "organization": self.organization, "team_id": self.team.id}

    def initial(self) -> dict[str, Any]:
        return {"name": self.team.name}

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        actions = {
            "add-member": self._add_member,
            "remove-member": self._remove_member,
            "grant": self._add_vendor,
            "revoke": self._remove_vendor,
            "bind-key": self._bind_key,
            "unbind-key": self._unbind_key,
        }
        asked = request.POST.get("action", "")
        if asked == "rename":
            return super().post(request, **path)
        action = actions.get(asked)
        if action is None:
            return self.show(self.new_form(), status=422)
        return action() or redirect(request.path)

    def save(self, form: TeamForm) -> HttpResponse:
        team = rename_team(**self._subject, **form.cleaned_data)
        return self.done(f"The team is called {team.name} now.", "orgs:team", team.id)

    def _add_member(self) -> HttpResponse | None:
        key, subject = ids.parse_id(self.request.POST.get("member", "")), self._subject
        if key is None:
            return self._fault("member", "Choose a member.")
        try:
            row = add_team_member(**subject, user_id=key)
        except NotFound:
            return self._fault("member", "This person is no member of the organization any more.")
        messages.success(self.request, f"{row.membership.user.name} is in the team.")
        return None

    def _remove_member(self) -> None:
        person = selectors.member(self.organization, self.request.POST.get("member", "")).user
        was_in_it = selectors.team_members(self.team).filter(membership__user=person).exists()
        remove_team_member(**self._subject, user_id=person.id)
        if not was_in_it:
            messages.info(self.request, f"{person.name} is not in the team.")
            return
        undo.offer(
            self.request, f"{person.name} is out of the team.", {"action": "add-member", "member": str(person.id)}
        )

    def _add_vendor(self) -> HttpResponse | None:
        vendor, subject = self.request.POST.get("vendor", ""), self._subject
        try:
            add_team_vendor(**subject, vendor=vendor)
        except NotFound:
            return self._fault("vendor", "Choose a vendor of the catalog.")
        messages.success(self.request, f"Everybody in the team may use {registry.load().name_of(vendor)}.")
        return None

    def _remove_vendor(self) -> None:
        vendor = self.request.POST.get("vendor", "")
        had_it = self._server_access().filter(vendor=vendor).exists()
        remove_team_vendor(**self._subject, vendor=vendor)
        name = registry.load().name_of(vendor)
        if not had_it:
            messages.info(self.request, f"The team has no access to {name}.")
            return
        undo.offer(self.request, f"The team has no access to {name} any more.", {"action": "grant", "vendor": vendor})

    def _bind_key(self) -> HttpResponse | None:
        subject, key = self._subject, self._key(None)
        if key is None:
            return self._fault("key", "Choose a key that is bound to no team.")
        try:
            update_named_key(**subject, key_id=key.id, vendor=key.vendor, name=key.name)
        except TeamHasKey as refusal:
            return self._fault("key", refusal.message)
        messages.success(self.request, f"The key {key.name} serves the team.")
        return None

    def _unbind_key(self) -> None:
        key = self._key(self.team.id)
        if key is None:
            raise NotFound
        update_named_key(**{**self._subject, "team_id": None}, key_id=key.id, vendor=key.vendor, name=key.name)
        undo.offer(self.request, f"The key {key.name} serves no team now.", {"action": "bind-key", "key": str(key.id)})

    def _fault(self, field: str, text: str) -> HttpResponse:
        return self.show(self.new_form(), errors={field: text}, status=422)

    def _server_access(self) -> QuerySet[ServerAccess]:
        return selectors.server_access(self.organization).filter(team=self.team)

    def _key(self, team_id: UUID | None) -> CredentialSummary | None:
        """The named key in the form, if it is bound to `team_id` (None: unbound)."""
        asked = ids.parse_id(self.request.POST.get("key", ""))
        return next((row for row in self._keys(team_id) if row.id == asked), None)

    def _keys(self, team_id: UUID | None) -> list[CredentialSummary]:
        rows = credential_summaries(self.organization)
        return [row for row in rows if row.scope is CredentialScope.NAMED_KEY and row.team_id == team_id]

    def context(self) -> dict[str, Any]:
        asked = search_words(self.request, "find")
        candidates = selectors.members(self.organization, matching=asked).exclude(team_memberships__team=self.team)
        return {
            "team": self.team,
            "errors": {},
            "page": page_of(self.request, selectors.team_members(self.team)),
            "asked": asked,
            "candidates": candidates[:MAX_CANDIDATES],
            "is_long": bool(asked) or candidates.count() > MAX_CANDIDATES,
            "undo": undo.take(self.request),
            **self._vendors(),
        }

    def _vendors(self) -> dict[str, Any]:
        catalog, connected = registry.load(), set(people_vendors(self.organization))
        rows = list(self._server_access().order_by("vendor"))
        held = {row.vendor for row in rows}
        rest = [vendor for vendor in catalog if vendor.slug not in held]
        return {
            "server_access": [
                {"row": row, "name": catalog.name_of(row.vendor), "is_connected": row.vendor in connected}
                for row in rows
            ],
            "addable": [
                ("Connected", [vendor for vendor in rest if vendor.slug in connected]),
                ("Not connected yet", [vendor for vendor in rest if vendor.slug not in connected]),
            ],
            "held": [
                {
                    "row": row,
                    "name": catalog.name_of(row.vendor),
                    "is_key": row.scope is CredentialScope.NAMED_KEY,
                }
                for row in summaries_with_rejection(self.organization)
                if row.team_id == self.team.id
            ],
            "free_keys": [(row, catalog.name_of(row.vendor)) for row in self._keys(None)],
            "catalog": catalog.all(),
        }
