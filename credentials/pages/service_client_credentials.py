"""Pages that store, replace and delete one service client's credentials."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import cached_property

from credentials.credential_scope import CredentialScope
from credentials.pages.credential import CredentialHolder, HolderCredentialPage
from gateway.catalog import registry
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from oauth_ext.selectors import service_client
from orgs.roles import Role


class ChooseServiceClientCredentialPage(OrgPage):
    """GET /orgs/:orgId/service-accounts/:clientId/credentials?vendor=: redirects to the vendor's form."""

    gates = {"GET": Gate(Role.ADMIN)}
    title = "Credentials of a service account"
    nav_route = "oauth_pages:service-clients"

    def get(self, request: HttpRequest, client_id: str) -> HttpResponse:
        client = service_client(self.organization, client_id)
        vendor = registry.vendor_or_none(request.GET.get("vendor", ""))
        if vendor is None:
            messages.info(request, "Choose a vendor first.")
            return redirect("oauth_pages:service-client", self.organization.id, client.id)
        return redirect("credentials:service-client-credential", self.organization.id, client.id, vendor.slug)


class ServiceClientCredentialPage(HolderCredentialPage):
    """GET, POST /orgs/:orgId/service-accounts/:clientId/credentials/:vendor."""

    title = "Credentials of a service account"
    nav_route = "oauth_pages:service-clients"
    template = "credentials/service_client_credential.html"

    @cached_property
    def holder(self) -> CredentialHolder:
        found = service_client(self.organization, str(self.kwargs["client_id"]))
        back = reverse("oauth_pages:service-client", args=[self.organization.id, found.id])
        return CredentialHolder(CredentialScope.SERVICE_CLIENT, found.name, back, service_client=found)
