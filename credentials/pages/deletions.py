"""Pages that delete a stored credential: they count its calls first, and ask for a name while it is in use."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy, ngettext

from audit.selectors import CallsThrough
from credentials import selectors
from credentials.calls_through import calls_through
from credentials.credential_scope import CredentialScope
from credentials.pages.holder_tabs import OfAgent, OfTeam
from credentials.pages.rows import CredentialRow, shown_rows
from credentials.rejections import summaries_with_rejection
from credentials.selectors import CredentialSummary
from credentials.services.credentials import delete_credential
from gateway.catalog import registry
from gateway.lib.errors import NotFound
from gateway.lib.numbers import grouped
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.log_reads import log_read
from gateway.web.navigation import VENDOR_TABS
from gateway.web.organization_slots import ShareTaken, SlotsTaken
from gateway.web.typed_name import TypedNameForm
from orgs.roles import Role
from proxy.control_plane.credential_holder import CredentialHolder, HolderFinder, of_organization


class DeleteCredentialPage(OrgFormPage[TypedNameForm]):
    """GET, POST …/delete. Asks for a name if the credential had a call in the last 24 hours."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Delete credentials")
    template = "credentials/delete.html"
    refusal_status = None
    find_holder: HolderFinder

    @cached_property
    def holder(self) -> CredentialHolder:
        return self.find_holder(self.organization, self.kwargs)

    def is_it(self, row: CredentialSummary) -> bool:
        return self.holder.holds(row)

    @cached_property
    def rows(self) -> list[CredentialRow]:
        """The vendor's credentials."""
        return shown_rows(
            self.organization.id, summaries_with_rejection(self.organization, vendor=self.kwargs["vendor"])
        )

    @cached_property
    def row(self) -> CredentialRow:
        found = next((row for row in self.rows if self.is_it(row.stored)), None)
        if found is None:
            raise NotFound
        return found

    @cached_property
    def vendor_name(self) -> str:
        return registry.load().name_of(self.row.stored.vendor)

    @property
    def typed_name(self) -> str:
        stored = self.row.stored
        return stored.name or stored.team_name or stored.service_client_name or self.vendor_name

    @cached_property
    def calls(self) -> CallsThrough | None:
        """None while others read the logs."""
        try:
            with log_read(self.organization.id):
                return calls_through(self.organization, self.row.stored)
        except (ShareTaken, SlotsTaken):
            return None

    @property
    def is_in_use(self) -> bool:
        return self.calls is None or self.calls.calls_today > 0 or self.calls.is_part

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        return TypedNameForm(self.typed_name if self.is_in_use else "", data)

    def save(self, form: TypedNameForm) -> HttpResponse:
        found = selectors.credential(self.organization, self.row.stored.id)
        text, page = self._done(), self._after()
        delete_credential(actor=self.actor, credential=found)
        return self.done(text, *page)

    def _done(self) -> str:
        stored = self.row.stored
        match stored.scope:
            case CredentialScope.ORGANIZATION:
                return gettext("%(vendor)s is disconnected.") % {"vendor": self.vendor_name}
            case CredentialScope.NAMED_KEY:
                return gettext("The key %(name)s was deleted.") % {"name": stored.name}
        holder = stored.team_name or stored.service_client_name
        return gettext("The %(vendor)s credentials of %(holder)s were deleted.") % {
            "holder": holder,
            "vendor": self.vendor_name,
        }

    def _after(self) -> tuple[str, *tuple[object, ...]]:
        stored = self.row.stored
        match stored.scope:
            case CredentialScope.ORGANIZATION:
                return ("proxy_pages:vendors",)
            case CredentialScope.TEAM:
                return "orgs:team-access", stored.team_id
            case CredentialScope.SERVICE_CLIENT:
                return "oauth_pages:service-client", stored.service_client_id
        return "credentials:connection", stored.vendor

    def context(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "vendor_name": self.vendor_name,
            "calls": self.calls,
            "is_in_use": self.is_in_use,
            "back": self.row.page,
            "consequences": self._callers(),
            "others": [row.whose for row in self.rows if row.stored.id != self.row.stored.id],
        }

    def _callers(self) -> str:
        found = self.calls
        if found is None:
            return ""
        people = ngettext("%(count)s member", "%(count)s members", found.people) % {"count": found.people}
        agents = ngettext("%(count)s agent", "%(count)s agents", found.agents) % {"count": found.agents}
        calls = ngettext("%(count)s call", "%(count)s calls", found.calls) % {"count": grouped(found.calls)}
        text = gettext(
            "%(people)s and %(agents)s used these credentials: %(calls)s in the last 30 days, %(today)s in the last "
            "24 hours."
        )
        if found.is_part:
            text = gettext(
                "At least %(people)s and %(agents)s used these credentials: %(calls)s in the last 30 days, "
                "%(today)s in the last 24 hours."
            )
        today = grouped(found.calls_today)
        return text % {"people": people, "agents": agents, "calls": calls, "today": today}


class _OfVendor(DeleteCredentialPage):
    nav_route = "proxy_pages:vendors"
    tabs = VENDOR_TABS
    tab_route = "credentials:connection"

    def tab_ids(self) -> tuple[object, ...]:
        return (self.kwargs["vendor"],)


class DisconnectPage(_OfVendor):
    """GET, POST /orgs/:orgId/vendors/:vendor/settings/disconnect"""

    title = gettext_lazy("Disconnect")
    find_holder = staticmethod(of_organization)


class DeleteKeyPage(_OfVendor):
    """GET, POST /orgs/:orgId/vendors/:vendor/keys/:keyId/delete"""

    def is_it(self, row: CredentialSummary) -> bool:
        return row.scope is CredentialScope.NAMED_KEY and row.id == self.kwargs["key_id"]


class DeleteTeamCredentialPage(OfTeam, DeleteCredentialPage):
    """GET, POST /orgs/:orgId/teams/:teamId/credentials/:vendor/delete"""


class DeleteServiceClientCredentialPage(OfAgent, DeleteCredentialPage):
    """GET, POST /orgs/:orgId/agents/:clientId/credentials/:vendor/delete"""
