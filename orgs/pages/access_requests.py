"""Access requests: members ask for a vendor and see the answer, admins decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from credentials.selectors import people_vendors
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib import clock, ids
from gateway.lib.errors import DomainError, Invalid, NotFound
from gateway.lib.translated import sentences_of
from gateway.web.access_end import CHOICES, read_end, shown_end
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs import selectors
from orgs.models import AccessRequest
from orgs.models.access_request import REASON_MAX_CHARACTERS
from orgs.roles import Role
from orgs.server_access_reasons import effective_server_access
from orgs.services.access_requests import approve_request, create_request, decline_request, withdraw_request

DECISIONS_SHOWN = 20


class AccessRequestsPage(OrgPage):
    """GET, POST /orgs/:orgId/access-requests[?vendor=]. Each button is a form with an `action`. Spec: D169"""

    gates = {
        "GET": Gate(Role.MEMBER),
        "POST": Gate(Role.MEMBER),
        "POST ask": Gate(Role.MEMBER, limit=settings.ACCESS_REQUEST_CREATE),
        "POST approve": Gate(Role.ADMIN),
        "POST decline": Gate(Role.ADMIN),
    }
    title = gettext_lazy("Access requests")
    nav_route = "orgs:access-requests"

    def get(self, request: HttpRequest) -> HttpResponse:
        connected = people_vendors(self.organization)
        catalog = registry.load()
        usable = {each.vendor for each in effective_server_access(self.membership, connected)}
        own = {row.vendor: row for row in selectors.requests_of(self.membership)}
        wanted = registry.vendor_or_none(request.GET.get("vendor", ""))
        context: dict[str, Any] = {
            "is_admin": self.membership.has_role(Role.ADMIN),
            "askable": [
                (vendor, own.get(vendor.slug))
                for slug in _first(wanted, connected)
                if slug not in usable and (vendor := catalog.get(slug))
            ],
            "wanted": wanted,
            "has_wanted": wanted is not None and wanted.slug in usable,
            "is_wanted_connected": wanted is not None and wanted.slug in connected,
            "reason_max": REASON_MAX_CHARACTERS,
        }
        if context["is_admin"]:
            context |= self._decisions(connected)
        return self.page("orgs/access_requests.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        actions: dict[str, Callable[[], str]] = {
            "ask": self._ask,
            "approve": self._approve,
            "decline": self._decline,
            "withdraw": self._withdraw,
        }
        action = actions.get(request.POST.get("action", ""))
        if action is None:
            raise Invalid(gettext("Something is wrong with this form. Reload the page."))
        try:
            messages.success(request, action())
        except NotFound:
            messages.info(request, gettext("This request has ended. Nothing was changed."))
        except DomainError as refusal:
            messages.error(request, sentences_of(refusal))
        return redirect(self._back())

    def _decisions(self, connected: list[str]) -> dict[str, Any]:
        catalog = registry.load()
        waiting = selectors.waiting_requests(self.organization, connected)
        decided = selectors.decided_requests(self.organization)[:DECISIONS_SHOWN]
        return {
            "waiting": [(row, catalog.name_of(row.vendor)) for row in waiting],
            "decided": [(row, catalog.name_of(row.vendor)) for row in decided],
            "end_choices": CHOICES,
        }

    def _ask(self) -> str:
        vendor = self.request.POST.get("vendor", "")
        row = create_request(
            **self._by_actor,
            vendor=vendor,
            reason=self.request.POST.get("reason", ""),
            connected_vendors=lambda: people_vendors(self.organization),
        )
        return gettext("You asked for access to %(vendor)s. An admin of %(organization)s will decide.") % {
            "vendor": _name(row),
            "organization": self.organization.name,
        }

    def _approve(self) -> str:
        row = approve_request(**self._chosen, expires_at=read_end(self.request.POST, clock.now()))
        names = {"person": row.membership.user.name, "vendor": _name(row)}
        if row.access_until is None:
            return gettext("%(person)s can use %(vendor)s.") % names
        until = shown_end(row.access_until)
        return gettext("%(person)s can use %(vendor)s until %(until)s.") % {**names, "until": until}

    def _decline(self) -> str:
        row = decline_request(**self._chosen, answer=self.request.POST.get("answer", ""))
        return gettext("You declined %(person)s’s request for %(vendor)s.") % {
            "person": row.membership.user.name,
            "vendor": _name(row),
        }

    def _withdraw(self) -> str:
        withdraw_request(**self._chosen)
        return gettext("Your request was withdrawn.")

    @property
    def _by_actor(self) -> dict[str, Any]:
        return {"actor": self.actor, "organization": self.organization}

    @property
    def _chosen(self) -> dict[str, Any]:
        return {**self._by_actor, "request_id": ids.known_id(self.request.POST.get("request", ""))}

    def _back(self) -> str:
        """The page of this organization that the form is on."""
        asked = self.request.POST.get("next", "")
        return asked if asked.startswith(f"/orgs/{self.organization.id}/") else self.request.path


def _first(wanted: Vendor | None, slugs: list[str]) -> list[str]:
    return sorted(slugs, key=lambda slug: (wanted is None or slug != wanted.slug, slug))


def _name(row: AccessRequest) -> str:
    return registry.load().name_of(row.vendor)
