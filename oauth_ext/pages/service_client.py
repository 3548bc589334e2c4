"""The page of one service client: its agent key, and its own vendor credentials."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from credentials.rejections import summaries_with_rejection
from credentials.selectors import organization_vendors
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from oauth_ext.models import Client
from oauth_ext.selectors import restricted_vendors, service_client
from orgs.roles import Role


class ServiceClientPage(OrgPage):
    """GET /orgs/:orgId/service-accounts/:clientId. Other pages change it."""

    gates = {"GET": Gate(Role.ADMIN)}
    title = "Service account"
    nav_route = "oauth_pages:service-clients"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        client = service_client(self.organization, client_id)
        catalog = registry.load()
        context = {
            "client": client,
            "is_expired": client.is_expired(),
            "held": self._held(client, catalog),
            "catalog": catalog.all(),
            **self._usable_vendors(client, catalog),
        }
        return self.page("oauth_ext/service_client.html", context)

    def _held(self, client: Client, catalog: Catalog) -> list[dict[str, Any]]:
        rows = summaries_with_rejection(self.organization)
        own = [row for row in rows if row.service_client_id == client.id]
        return [{"row": row, "name": catalog.name_of(row.vendor)} for row in own]

    def _usable_vendors(self, client: Client, catalog: Catalog) -> dict[str, Any]:
        """Spec: D34"""
        listed = restricted_vendors(client.id)
        shared = [slug for slug in organization_vendors(self.organization) if listed is None or slug in listed]
        return {"shared": catalog.names_of(shared), "is_restricted": listed is not None}
