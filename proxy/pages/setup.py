"""Set up a client: the gateway's address, a guide for the chosen client, usable vendors, and causes of trouble."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy

from credentials.selectors import credential_summaries
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from orgs.selectors import mean_tool_list_bytes, people_who_may, requests_of
from orgs.server_access_reasons import effective_server_access
from proxy.control_plane.health.selectors import down_among
from proxy.control_plane.own_vendors import own_vendors
from proxy.pages.client_guides import ClientGuide, by_group, guide, guides
from proxy.pages.compact_list import list_sizes

CLIENT_COOKIE = "client"
REMEMBERED_FOR = timedelta(days=365)


class SetupPage(OrgPage):
    """GET /orgs/:orgId/setup[?client=]. The last choice is remembered in this browser."""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Set up a client")
    nav_route = "proxy_pages:setup"

    def get(self, request: HttpRequest) -> HttpResponse:
        catalog = registry.load()
        own = own_vendors(self.membership, credential_summaries(self.organization))
        asked = {row.vendor: row for row in requests_of(self.membership)}
        chosen = guide(request.GET.get("client", ""))
        context: dict[str, Any] = {
            "mcp_url": f"{settings.BASE_URL}/v1/mcp",
            "list_sizes": list_sizes(mean_tool_list_bytes(self.organization), own.usable),
            "groups": by_group(),
            "guide": (chosen or remembered(request)).filled(settings.BASE_URL, own.usable[0] if own.usable else ""),
            # Only a service on this computer or network is without TLS.
            "is_local_address": settings.BASE_URL.startswith("http://"),
            "usable": [vendor for slug in own.usable if (vendor := catalog.get(slug))],
            "down": down_among(own.usable),
            "askable": [
                (vendor, asked.get(slug))
                for slug in own.connected
                if slug not in own.given and (vendor := catalog.get(slug))
            ],
            "ending": self._ending(own.usable),
            "not_serving": [vendor for slug in own.given if slug not in own.usable and (vendor := catalog.get(slug))],
            "admins": people_who_may(self.organization, Role.ADMIN),
            "is_admin": self.membership.has_role(Role.ADMIN),
        }
        answer = self.page("proxy/setup.html", context)
        if chosen is not None:
            remember(answer, chosen)
        return answer

    def _ending(self, usable: list[str]) -> list[tuple[Vendor, datetime]]:
        """The vendors whose access has an end, with the last one."""
        catalog = registry.load()
        ends: dict[str, list[datetime | None]] = {}
        for each in effective_server_access(self.membership, usable):
            ends.setdefault(each.vendor, []).append(each.expires_at)
        return [
            (vendor, max(end for end in ends[slug] if end))
            for slug in usable
            if all(ends.get(slug, [None])) and (vendor := catalog.get(slug))
        ]


def remembered(request: HttpRequest) -> ClientGuide:
    """The last choice in this browser, else the first guide."""
    return guide(request.COOKIES.get(CLIENT_COOKIE, "")) or guides()[0]


def remember(answer: HttpResponse, chosen: ClientGuide) -> None:
    answer.set_cookie(
        CLIENT_COOKIE,
        chosen.slug,
        max_age=REMEMBERED_FOR,
        path=reverse("landing"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
