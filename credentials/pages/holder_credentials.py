"""Pages that store, replace and delete credentials of a team or a service client."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from credentials.pages.credential import CredentialPage
from credentials.pages.holder_tabs import OfAgent, OfTeam
from gateway.catalog import registry
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs.roles import Role
from proxy.control_plane.credential_holder import HolderFinder


class ChooseCredentialPage(OrgPage):
    """GET …/credentials?vendor=: redirects to the vendor's form."""

    gates = {"GET": Gate(Role.ADMIN)}
    find_holder: HolderFinder
    back_route: ClassVar[str]
    form_route: ClassVar[str]

    def get(self, request: HttpRequest, **path: UUID | str) -> HttpResponse:
        key = self.find_holder(self.organization, path).row.id
        vendor = registry.load().meant(request.GET.get("vendor", ""))
        if vendor is None:
            messages.info(request, gettext("Choose a vendor first."))
            return redirect(self.back_route, self.organization.id, key)
        return redirect(self.form_route, self.organization.id, key, vendor.slug)


class HolderCredentialPage(CredentialPage):
    """GET, POST …/credentials/:vendor. Spec: §4.6 · D66, D67"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
    }
    accepted = gettext_lazy("The %(vendor)s credentials for %(holder)s are saved and verified.")
    unchecked = gettext_lazy("The %(vendor)s credentials are saved, but we couldn’t verify them: %(detail)s")


class _TeamForm(OfTeam):
    title = gettext_lazy("Credentials of a team")
    back_route = "orgs:team-access"
    form_route = "credentials:team-credential"
    template = "credentials/team_credential.html"


class _AgentForm(OfAgent):
    title = gettext_lazy("Agent credentials")
    back_route = "oauth_pages:service-client-access"
    form_route = "credentials:service-client-credential"
    template = "credentials/service_client_credential.html"


class ChooseTeamCredentialPage(_TeamForm, ChooseCredentialPage):
    """GET /orgs/:orgId/teams/:teamId/credentials"""


class TeamCredentialPage(_TeamForm, HolderCredentialPage):
    """GET, POST /orgs/:orgId/teams/:teamId/credentials/:vendor"""


class ChooseServiceClientCredentialPage(_AgentForm, ChooseCredentialPage):
    """GET /orgs/:orgId/agents/:clientId/credentials"""


class ServiceClientCredentialPage(_AgentForm, HolderCredentialPage):
    """GET, POST /orgs/:orgId/agents/:clientId/credentials/:vendor"""
