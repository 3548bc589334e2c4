"""Pages that store, replace and delete credentials of a team or a service client."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from credentials.pages.credential import CredentialPage
from gateway.catalog import registry
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from proxy.control_plane.credential_holder import HolderFinder, of_client, of_team


class ChooseCredentialPage(OrgPage):
    """GET …/credentials?vendor=: redirects to the vendor's form."""

    gates = {"GET": Gate(Role.ADMIN)}
    find_holder: HolderFinder
    back_route: ClassVar[str]
    form_route: ClassVar[str]

    def get(self, request: HttpRequest, **path: UUID | str) -> HttpResponse:
        key = self.find_holder(self.organization, path).row.id
        vendor = registry.vendor_or_none(request.GET.get("vendor", ""))
        if vendor is None:
            messages.info(request, "Choose a vendor first.")
            return redirect(self.back_route, self.organization.id, key)
        return redirect(self.form_route, self.organization.id, key, vendor.slug)


class HolderCredentialPage(CredentialPage):
    """GET, POST …/credentials/:vendor. Spec: §4.6 · D66, D67"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
        "POST delete": Gate(Role.ADMIN),
    }
    accepted = "{holder} has credentials of its own for {vendor}. It accepted them."
    unchecked = "The credentials for {vendor} are stored, but could not be checked: {detail}"
    deleted = "{holder} has no credentials of its own for {vendor} any more."


class _OfTeam(OrgPage):
    title = "Credentials of a team"
    nav_route = "orgs:teams"
    back_route = "orgs:team"
    form_route = "credentials:team-credential"
    template = "credentials/team_credential.html"
    find_holder = staticmethod(of_team)


class _OfClient(OrgPage):
    title = "Credentials of a service account"
    nav_route = "oauth_pages:service-clients"
    back_route = "oauth_pages:service-client"
    form_route = "credentials:service-client-credential"
    template = "credentials/service_client_credential.html"
    find_holder = staticmethod(of_client)


class ChooseTeamCredentialPage(_OfTeam, ChooseCredentialPage):
    """GET /orgs/:orgId/teams/:teamId/credentials"""


class TeamCredentialPage(_OfTeam, HolderCredentialPage):
    """GET, POST /orgs/:orgId/teams/:teamId/credentials/:vendor"""


class ChooseServiceClientCredentialPage(_OfClient, ChooseCredentialPage):
    """GET /orgs/:orgId/service-accounts/:clientId/credentials"""


class ServiceClientCredentialPage(_OfClient, HolderCredentialPage):
    """GET, POST /orgs/:orgId/service-accounts/:clientId/credentials/:vendor"""
