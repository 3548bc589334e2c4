"""Credentials of an organization, a team or a service client over the API."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from credentials import selectors
from credentials.api.vendor_fields import REFUSED, FlatFields, StoredOut
from credentials.credential_scope import CredentialScope
from credentials.services.credentials import delete_credential
from gateway.catalog.registry import known_vendor
from gateway.web.api_view import OrgView
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from oauth_ext.selectors import service_client
from orgs.roles import Role
from orgs.selectors import team
from proxy.control_plane.connect_vendor import connect_vendor


class ConnectedVendors(OrgView):
    """GET /api/orgs/:orgId/credentials. Spec: §4.6"""

    gates = {"GET": Gate(Role.MEMBER)}
    operations = {"GET": Operation("Slugs of the vendors with a credential of the organization itself", texts=True)}

    def get(self, request: Request, org_id: str) -> Response:
        # The scope that POST and DELETE of this path act on. Spec: D141
        return self.answer(selectors.organization_vendors(self.organization))


class CredentialView(OrgView):
    """Base of the three levels. A subclass names its scope and the row that holds the credential."""

    scope = CredentialScope.ORGANIZATION

    def holder(self) -> dict[str, Any]:
        """The holder, as keyword arguments of `connect_vendor`. Raises: NotFound."""
        return {}

    def holder_ids(self) -> dict[str, Any]:
        return {f"{name}_id": row.id for name, row in self.holder().items()}

    def post(self, request: Request, org_id: str, vendor: str, **path: str) -> Response:
        # The vendor is asked first; a replaced credential keeps its id.
        known, holder = known_vendor(vendor), self.holder()
        connected = connect_vendor(
            actor=self.actor,
            organization=self.organization,
            vendor=known,
            scope=self.scope,
            fields=self.fields,
            **holder,
        )
        stored, check = connected.credential, connected.check
        return self.answer({"id": stored.id, "vendor": vendor, "validated": check.validated})

    def delete(self, request: Request, org_id: str, vendor: str, **path: str) -> Response:
        found = selectors.credential_at(self.organization, vendor, self.scope, **self.holder_ids())
        delete_credential(actor=self.actor, credential=found)
        return self.answer()


_STORE = Operation("Store a credential", body=FlatFields, answer=StoredOut, status=201, refusals=REFUSED)
_DELETE = Operation("Delete a credential", status=204)
# Section 8 has a number for the organization's credentials only; each of these asks the vendor as well.
_GATES_BELOW = {
    "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
    "DELETE": Gate(Role.ADMIN),
}


class OrganizationCredential(CredentialView):
    """POST, DELETE /api/orgs/:orgId/credentials/:vendor. Spec: §4.6, §8 · D62-D64"""

    gates = {
        "POST": Gate(Role.ADMIN, active_plan=True, limit=settings.CREDENTIAL_STORE),
        "DELETE": Gate(Role.ADMIN),
    }
    operations = {"POST": _STORE, "DELETE": _DELETE}


class TeamVendors(OrgView):
    """GET /api/orgs/:orgId/teams/:teamId/credentials. Spec: §4.6 · D66"""

    gates = {"GET": Gate(Role.ADMIN)}
    operations = {"GET": Operation("Slugs of the vendors with credentials of a team", texts=True)}

    def get(self, request: Request, org_id: str, team_id: str) -> Response:
        return self.answer(selectors.team_vendors(self.organization, team(self.organization, team_id).id))


class TeamCredential(CredentialView):
    """POST, DELETE /api/orgs/:orgId/teams/:teamId/credentials/:vendor. Spec: §4.6 · D66"""

    gates = _GATES_BELOW
    operations = {"POST": _STORE, "DELETE": _DELETE}
    scope = CredentialScope.TEAM

    def holder(self) -> dict[str, Any]:
        return {"team": team(self.organization, self.kwargs["team_id"])}


class ServiceClientVendors(OrgView):
    """GET /api/orgs/:orgId/service-clients/:clientId/credentials. Spec: §4.6 · D66"""

    gates = {"GET": Gate(Role.ADMIN)}
    operations = {"GET": Operation("Slugs of the vendors with credentials of a service client", texts=True)}

    def get(self, request: Request, org_id: str, client_id: str) -> Response:
        client = service_client(self.organization, client_id)
        return self.answer(selectors.service_client_vendors(self.organization, client.id))


class ServiceClientCredential(CredentialView):
    """POST, DELETE /api/orgs/:orgId/service-clients/:clientId/credentials/:vendor. Spec: §4.6 · D66"""

    gates = _GATES_BELOW
    operations = {"POST": _STORE, "DELETE": _DELETE}
    scope = CredentialScope.SERVICE_CLIENT

    def holder(self) -> dict[str, Any]:
        return {"service_client": service_client(self.organization, self.kwargs["client_id"])}
