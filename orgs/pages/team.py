"""One team: its name, members, server access and credentials."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from credentials.credential_scope import CredentialScope
from credentials.errors import TeamHasKey
from credentials.rejections import summaries_with_rejection
from credentials.selectors import CredentialSummary, credential_summaries, people_vendors
from credentials.services.keys import update_named_key
from gateway.catalog import registry
from gateway.lib import ids
from gateway.lib.errors import DomainError, NotFound
from gateway.web import undo
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.search import search_words
from orgs import selectors
from orgs.pages.teams import TeamForm
from orgs.pages.vendor_names import vendor_names
from orgs.roles import Role
from orgs.services.server_access import add_team_vendor, remove_team_vendor
from orgs.services.teams import add_team_member, remove_team_member, rename_team

# Names in the list for adding a member; a search narrows it.
MAX_CANDIDATES = 200


class TeamPage(OrgPage):
    """GET, POST /orgs/:orgId/teams/:teamId. Each button is a form with an `action` of its own."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Team"
    nav_route = "orgs:teams"

    def get(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        return self._page(team_id)

    def post(self, request: HttpRequest, team_id: UUID) -> HttpResponse:
        """Spec: §4.5-§4.7 · D59-D61, D65"""
        actions = {
            "rename": self._rename,
            "add-member": self._add_member,
            "remove-member": self._remove_member,
            "grant": self._add_vendor,
            "revoke": self._remove_vendor,
            "bind-key": self._bind_key,
            "unbind-key": self._unbind_key,
        }
        action = actions.get(request.POST.get("action", ""))
        if action is None:
            return self._page(team_id, status=422)
        return action(team_id) or redirect("orgs:team", self.organization.id, team_id)

    def _rename(self, team_id: UUID) -> HttpResponse | None:
        form = TeamForm(self.request.POST)
        if form.is_valid():
            try:
                team = rename_team(
                    actor=self.actor, organization=self.organization, team_id=team_id, **form.cleaned_data
                )
            except NotFound:
                raise
            except DomainError as refusal:
                show_on(form, refusal)
            else:
                messages.success(self.request, f"The team is called {team.name} now.")
                return None
        return self._page(team_id, form=form, status=422)

    def _add_member(self, team_id: UUID) -> HttpResponse | None:
        selectors.team(self.organization, str(team_id))
        key = ids.parse_id(self.request.POST.get("member", ""))
        if key is None:
            return self._page(team_id, errors={"member": "Choose a member."}, status=422)
        try:
            row = add_team_member(actor=self.actor, organization=self.organization, team_id=team_id, user_id=key)
        except NotFound:
            refusal = "This person is no member of the organization any more."
            return self._page(team_id, errors={"member": refusal}, status=422)
        messages.success(self.request, f"{row.membership.user.name} is in the team.")
        return None

    def _remove_member(self, team_id: UUID) -> None:
        team = selectors.team(self.organization, str(team_id))
        person = selectors.member(self.organization, self.request.POST.get("member", "")).user
        was_in_it = selectors.team_members(team).filter(membership__user=person).exists()
        remove_team_member(actor=self.actor, organization=self.organization, team_id=team_id, user_id=person.id)
        if not was_in_it:
            messages.info(self.request, f"{person.name} is not in the team.")
            return
        undo.offer(
            self.request, f"{person.name} is out of the team.", {"action": "add-member", "member": str(person.id)}
        )

    def _add_vendor(self, team_id: UUID) -> HttpResponse | None:
        selectors.team(self.organization, str(team_id))
        vendor = self.request.POST.get("vendor", "")
        try:
            add_team_vendor(actor=self.actor, organization=self.organization, team_id=team_id, vendor=vendor)
        except NotFound:
            return self._page(team_id, errors={"vendor": "Choose a vendor of the catalog."}, status=422)
        messages.success(self.request, f"Everybody in the team may use {vendor_names([vendor])[0]}.")
        return None

    def _remove_vendor(self, team_id: UUID) -> None:
        vendor = self.request.POST.get("vendor", "")
        had_it = selectors.server_access(self.organization).filter(team_id=team_id, vendor=vendor).exists()
        remove_team_vendor(actor=self.actor, organization=self.organization, team_id=team_id, vendor=vendor)
        name = vendor_names([vendor])[0]
        if not had_it:
            messages.info(self.request, f"The team has no grant for {name}.")
            return
        undo.offer(self.request, f"The team has no grant for {name} any more.", {"action": "grant", "vendor": vendor})

    def _bind_key(self, team_id: UUID) -> HttpResponse | None:
        selectors.team(self.organization, str(team_id))
        key = self._key(None)
        if key is None:
            return self._page(team_id, errors={"key": "Choose a key that is bound to no team."}, status=422)
        try:
            self._set_team(key, team_id)
        except TeamHasKey as refusal:
            return self._page(team_id, errors={"key": refusal.message}, status=422)
        messages.success(self.request, f"The key {key.name} serves the team.")
        return None

    def _unbind_key(self, team_id: UUID) -> None:
        key = self._key(selectors.team(self.organization, str(team_id)).id)
        if key is None:
            raise NotFound
        self._set_team(key, None)
        undo.offer(self.request, f"The key {key.name} serves no team now.", {"action": "bind-key", "key": str(key.id)})

    def _key(self, team_id: UUID | None) -> CredentialSummary | None:
        """The named key in the form, if it is bound to `team_id` (None: unbound)."""
        asked = ids.parse_id(self.request.POST.get("key", ""))
        return next((row for row in self._keys(team_id) if row.id == asked), None)

    def _keys(self, team_id: UUID | None) -> list[CredentialSummary]:
        rows = credential_summaries(self.organization)
        return [row for row in rows if row.scope is CredentialScope.NAMED_KEY and row.team_id == team_id]

    def _set_team(self, key: CredentialSummary, team_id: UUID | None) -> None:
        update_named_key(
            actor=self.actor,
            organization=self.organization,
            key_id=key.id,
            vendor=key.vendor,
            name=key.name,
            team_id=team_id,
        )

    def _page(
        self,
        team_id: UUID,
        *,
        form: TeamForm | None = None,
        errors: dict[str, str] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        team = selectors.team(self.organization, str(team_id))
        asked = search_words(self.request, "find")
        candidates = selectors.members(self.organization, matching=asked).exclude(team_memberships__team=team)
        context: dict[str, Any] = {
            "team": team,
            "form": form or TeamForm(initial={"name": team.name}),
            "errors": errors or {},
            "page": page_of(self.request, selectors.team_members(team)),
            "asked": asked,
            "candidates": candidates[:MAX_CANDIDATES],
            "is_long": bool(asked) or candidates.count() > MAX_CANDIDATES,
            "undo": undo.take(self.request),
            **self._vendors(team_id),
        }
        return self.page("orgs/team.html", context, status=status)

    def _vendors(self, team_id: UUID) -> dict[str, Any]:
        catalog, connected = registry.load(), set(people_vendors(self.organization))
        rows = list(selectors.server_access(self.organization).filter(team_id=team_id).order_by("vendor"))
        held = {row.vendor for row in rows}
        rest = [vendor for vendor in catalog if vendor.slug not in held]
        return {
            "server_access": [
                {
                    "row": row,
                    "name": vendor_names([row.vendor], catalog)[0],
                    "is_connected": row.vendor in connected,
                }
                for row in rows
            ],
            "addable": [
                ("Connected", [vendor for vendor in rest if vendor.slug in connected]),
                ("Not connected yet", [vendor for vendor in rest if vendor.slug not in connected]),
            ],
            "held": [
                {
                    "row": row,
                    "name": vendor_names([row.vendor], catalog)[0],
                    "is_key": row.scope is CredentialScope.NAMED_KEY,
                }
                for row in summaries_with_rejection(self.organization)
                if row.team_id == team_id
            ],
            "free_keys": [(row, vendor_names([row.vendor], catalog)[0]) for row in self._keys(None)],
            "catalog": catalog.all(),
        }
