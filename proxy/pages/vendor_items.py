"""The page of a vendor's resources and prompts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy

from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import translated
from gateway.web.gate import Gate
from orgs.roles import Role
from proxy.control_plane.vendor_items import Items, items_for, limited_roles
from proxy.pages.vendor import VendorThingPage
from proxy.protocol.item_kinds import ItemKind


class VendorItemsPage(VendorThingPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/resources. Reading never asks the vendor; POST does, and keeps nothing.

    docs/decisions/0104, 0105
    """

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS)}
    title = gettext_lazy("Vendor")
    tab_route = "proxy_pages:tool-access"

    def get(self, request: HttpRequest, vendor: str) -> HttpResponse:
        return self.page("proxy/vendor_items.html", self._rights())

    def post(self, request: HttpRequest, vendor: str) -> HttpResponse:
        """Raises: NotFound."""
        try:
            lists = _lists(items_for(self.membership, self.vendor))
        except NotFound:
            raise
        except DomainError as refusal:
            return self.page("proxy/vendor_items.html", {**self._rights(), "fault": translated(refusal.message)})
        return self.page("proxy/vendor_items.html", {**self._rights(), "lists": lists})

    def _rights(self) -> dict[str, Any]:
        """The roles whose list of tools closes the vendor's resources and prompts."""
        limited = limited_roles(self.organization.id, self.vendor)
        return {"limited_roles": [translated(role.value) for role in limited]}


def _lists(found: Items) -> list[dict[str, Any]]:
    titles = {
        ItemKind.RESOURCE: gettext("Resources"),
        ItemKind.TEMPLATE: gettext("Resource templates"),
        ItemKind.PROMPT: gettext("Prompts"),
    }
    return [{"title": title, "entries": found[kind]} for kind, title in titles.items()]
