"""The vendors that a team may use, and the credentials that its calls use."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.utils.functional import cached_property
from django.utils.translation import gettext

from credentials.credential_scope import CredentialScope
from credentials.errors import TeamHasKey
from credentials.rejections import SummaryWithRejection, summaries_with_rejection
from credentials.selectors import CredentialSummary, people_vendors_among
from credentials.services.keys import update_named_key
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.lib import clock, ids
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.translated import sentences_of, translated
from gateway.web import undo
from gateway.web.access_end import CHOICES, read_end, shown_end
from orgs.pages.team import Action, TeamButtonsPage
from orgs.services.server_access import add_team_vendor, remove_team_vendor


class TeamAccessPage(TeamButtonsPage):
    """GET, POST /orgs/:orgId/teams/:teamId/access. Spec: §4.5, §4.6 · D59, D65"""

    tab_route = "orgs:team-access"

    def actions(self) -> dict[str, Action]:
        return {
            "grant": self._add_vendor,
            "revoke": self._remove_vendor,
            "bind-key": self._bind_key,
            "unbind-key": self._unbind_key,
        }

    def _add_vendor(self) -> HttpResponse | None:
        vendor, subject = registry.load().meant(self.request.POST.get("vendor", "")), self.subject
        if vendor is None:
            return self.fault("vendor", gettext("Choose a vendor from the catalog."))
        try:
            row = add_team_vendor(**subject, vendor=vendor.slug, expires_at=read_end(self.request.POST, clock.now()))
        except Invalid as refusal:
            return self.fault("vendor", sentences_of(refusal))
        words = {"vendor": vendor.name}
        if row.expires_at is None:
            text = gettext("Everyone in the team can use %(vendor)s.") % words
        else:
            words["until"] = shown_end(row.expires_at)
            text = gettext("Everyone in the team can use %(vendor)s until %(until)s.") % words
        messages.success(self.request, text)
        return None

    def _remove_vendor(self) -> None:
        vendor = self.request.POST.get("vendor", "")
        held = next((row for row in self.server_access if row.vendor == vendor), None)
        remove_team_vendor(**self.subject, vendor=vendor)
        words = {"name": registry.load().name_of(vendor)}
        if held is None:
            messages.info(self.request, gettext("The team has no access to %(name)s.") % words)
            return
        text = gettext("The team no longer has access to %(name)s.") % words
        if held.expires_at is not None:
            # Access that is given back has no end.
            messages.success(self.request, text)
            return
        undo.offer(self.request, text, {"action": "grant", "vendor": vendor})

    def _bind_key(self) -> HttpResponse | None:
        subject, key = self.subject, self._key(None)
        if key is None:
            return self.fault("key", gettext("Choose a key that isn’t assigned to a team yet."))
        try:
            update_named_key(**subject, key_id=key.id, vendor=key.vendor, name=key.name)
        except TeamHasKey as refusal:
            return self.fault("key", translated(refusal.message))
        messages.success(self.request, gettext("The key %(name)s is assigned to the team.") % {"name": key.name})
        return None

    def _unbind_key(self) -> None:
        key = self._key(self.team.id)
        if key is None:
            raise NotFound
        update_named_key(**{**self.subject, "team_id": None}, key_id=key.id, vendor=key.vendor, name=key.name)
        text = gettext("The key %(key)s is no longer assigned to the team.") % {"key": key.name}
        undo.offer(self.request, text, {"action": "bind-key", "key": str(key.id)})

    @cached_property
    def _credentials(self) -> list[SummaryWithRejection]:
        return summaries_with_rejection(self.organization)

    def _key(self, team_id: UUID | None) -> CredentialSummary | None:
        """The named key in the form, if it is bound to `team_id` (None: unbound)."""
        asked = ids.parse_id(self.request.POST.get("key", ""))
        return next((row for row in self._keys(team_id) if row.id == asked), None)

    def _keys(self, team_id: UUID | None) -> list[CredentialSummary]:
        rows = self._credentials
        return [row for row in rows if row.scope is CredentialScope.NAMED_KEY and row.team_id == team_id]

    def shown(self, *, errors: dict[str, str], status: int) -> HttpResponse:
        catalog = registry.load()
        context = {
            "errors": errors,
            "undo": undo.take(self.request),
            "end_choices": CHOICES,
            **self._vendors(catalog),
            **self._held(catalog),
        }
        return self.page("orgs/team_access.html", context, status=status)

    def _vendors(self, catalog: Catalog) -> dict[str, Any]:
        connected = set(people_vendors_among(self._credentials))
        held = {row.vendor for row in self.server_access}
        return {
            "server_access": [
                {"row": row, "name": catalog.name_of(row.vendor), "is_connected": row.vendor in connected}
                for row in self.server_access
            ],
            # The connected ones first.
            "addable": sorted(
                (vendor for vendor in catalog if vendor.slug not in held), key=lambda each: each.slug not in connected
            ),
        }

    def _held(self, catalog: Catalog) -> dict[str, Any]:
        return {
            "held": [
                {"row": row, "name": catalog.name_of(row.vendor), "is_key": row.scope is CredentialScope.NAMED_KEY}
                for row in self._credentials
                if row.team_id == self.team.id
            ],
            "free_keys": [(row, catalog.name_of(row.vendor)) for row in self._keys(None)],
            "catalog": catalog.all(),
        }
