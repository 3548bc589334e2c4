"""The vendors that one agent may use: all of them or a list, with ends, and credentials of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext

from credentials.rejections import with_rejections
from credentials.selectors import organization_vendors
from gateway.catalog import registry
from gateway.lib import clock
from gateway.lib.errors import DomainError, Invalid, NotFound
from gateway.lib.translated import sentences_of
from gateway.web.access_end import CHOICES, read_end, shown_end
from gateway.web.gate import Gate
from oauth_ext.pages.service_client import ServiceClientThingPage
from oauth_ext.selectors import service_client_vendor_rows
from oauth_ext.services.service_client_vendors import (
    add_client_vendor,
    remove_client_vendor,
    replace_client_vendors,
    restrict_client,
)
from orgs.roles import Role


@dataclass(frozen=True, slots=True)
class AgentVendor:
    """One vendor and the agent. `reasons`: why it may use it, in words; `ends_at`: of the access on its list."""

    slug: str
    name: str
    is_connected: bool
    reasons: tuple[str, ...]
    is_listed: bool
    ends_at: datetime | None


class ServiceClientAccessPage(ServiceClientThingPage):
    """GET, POST /orgs/:orgId/agents/:clientId/access. Each button is a form with an `action`. Spec: D34, D173"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    tab_route = "oauth_pages:service-client-access"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        catalog, connected = self.catalog, self.shared_vendors
        rows = with_rejections(self.organization, self.credentials)
        held = [row for row in rows if row.service_client_id == self.client.id]
        context = {
            "is_restricted": self.listed is not None,
            "vendors": self._vendors(connected, {row.vendor for row in held}),
            "addable": [vendor for slug in connected if (vendor := catalog.get(slug))],
            "end_choices": CHOICES,
            "held": [{"row": row, "name": catalog.name_of(row.vendor)} for row in held],
            "catalog": catalog.all(),
        }
        return self.page("oauth_ext/service_client_access.html", context)

    def post(self, request: HttpRequest, client_id: str) -> HttpResponse:
        actions: dict[str, Callable[[], str]] = {
            "restrict": self._restrict,
            "lift": self._lift,
            "give": self._give,
            "remove": self._remove,
        }
        action = actions.get(request.POST.get("action", ""))
        # The look-up comes before the form: another organization's agent is not found.
        name = self.client.name
        if action is None:
            raise Invalid(gettext("Choose what to change for %(name)s.") % {"name": name})
        try:
            messages.success(request, action())
        except NotFound:
            messages.error(request, gettext("Choose a vendor."))
        except DomainError as refusal:
            messages.error(request, sentences_of(refusal))
        return redirect(request.path)

    def _restrict(self) -> str:
        """The agent keeps the vendors that it can use now."""
        connected = organization_vendors(self.organization)
        if not restrict_client(**self._subject, vendors=connected):
            return gettext("%(client)s was already limited to chosen vendors. Nothing changed.") % {
                "client": self.client.name
            }
        return gettext("%(client)s can use the vendors below. Vendors connected later are not included.") % {
            "client": self.client.name
        }

    def _lift(self) -> str:
        replace_client_vendors(**self._subject, vendors=None)
        return gettext("%(client)s can use all connected vendors, including ones added later.") % {
            "client": self.client.name
        }

    def _give(self) -> str:
        vendor = registry.load().meant(self.request.POST.get("vendor", ""))
        if vendor is None:
            raise NotFound
        end = read_end(self.request.POST, clock.now())
        row = add_client_vendor(**self._subject, vendor=vendor.slug, expires_at=end)
        names = {"client": self.client.name, "vendor": vendor.name}
        if row.expires_at is None:
            return gettext("%(client)s can use %(vendor)s.") % names
        until = shown_end(row.expires_at)
        return gettext("%(client)s can use %(vendor)s until %(until)s.") % {**names, "until": until}

    def _remove(self) -> str:
        vendor = self.request.POST.get("vendor", "")
        remove_client_vendor(**self._subject, vendor=vendor)
        return gettext("%(client)s can no longer use %(vendor)s.") % {
            "client": self.client.name,
            "vendor": registry.load().name_of(vendor),
        }

    @property
    def _subject(self) -> dict[str, Any]:
        return {"actor": self.actor, "organization": self.organization, "client": self.client}

    def _vendors(self, connected: list[str], own: set[str]) -> list[AgentVendor]:
        catalog = registry.load()
        listed = {
            row.vendor: row.expires_at
            for row in service_client_vendor_rows(self.organization).filter(client=self.client)
        }
        found = []
        for slug in {*connected, *listed, *own}:
            reasons = {
                gettext("own credentials"): slug in own,
                gettext("all vendors"): self.listed is None and slug in connected,
                gettext("chosen"): slug in listed,
            }
            found.append(
                AgentVendor(
                    slug,
                    catalog.name_of(slug),
                    slug in connected or slug in own,
                    tuple(text for text, applies in reasons.items() if applies),
                    slug in listed,
                    listed.get(slug),
                )
            )
        return sorted(found, key=lambda each: (each.name.casefold(), each.slug))
