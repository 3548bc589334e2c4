"""Credentials of an organization, a team or a service client over the API."""

from __future__ import annotations

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from credentials import selectors
from credentials.api.vendor_fields import ANYWAY, KEPT, REFUSED, FlatFields, StoredOut, asks_anyway
from credentials.services.credentials import delete_credential
from gateway.catalog.registry import known_vendor
from gateway.web.api_view import OrgView
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import Operation
from orgs.roles import Role, TokenScope
from proxy.control_plane.credential_holder import HolderFinder, of_organization, of_team


class ConnectedVendors(OrgView):
    """GET /api/orgs/:orgId/credentials. Spec: §4.6"""

    gates = {"GET": Gate(Role.MEMBER, token=TokenScope.READ)}
    operations = {"GET": Operation("List connected vendors", texts=True)}

    def get(self, request: Request, org_id: str) -> Response:
        # The scope that POST and DELETE of this path act on. Spec: D141
        return self.answer(selectors.organization_vendors(self.organization))


class HolderVendors(OrgView):
    """GET …/credentials of a team or a service client. Spec: §4.6 · D66"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {"GET": Operation("List vendors with own credentials of the team or service client", texts=True)}
    find_holder: HolderFinder = staticmethod(of_team)

    def get(self, request: Request, org_id: str, **path: str) -> Response:
        return self.answer(self.find_holder(self.organization, path).vendors())


_STORE = Operation(
    "Store a credential", body=FlatFields, answer=StoredOut, status=201, query=[ANYWAY], refusals={**REFUSED, **KEPT}
)
_DELETE = Operation("Delete a credential", status=204)


class HolderCredential(OrgView):
    """POST, DELETE …/credentials/:vendor of a team or a service client. Spec: §4.6 · D66"""

    # Each POST asks the vendor. Section 8 limits only those of the organization's own credentials.
    gates = {
        "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS, token=TokenScope.ADMIN),
        "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    operations = {"POST": _STORE, "DELETE": _DELETE}
    find_holder: HolderFinder = staticmethod(of_team)

    def post(self, request: Request, org_id: str, vendor: str, **path: str) -> Response:
        # The vendor is asked first; a replaced credential keeps its id.
        known, holder = known_vendor(vendor), self.find_holder(self.organization, path)
        connected = holder.connect(actor=self.actor, vendor=known, fields=self.fields, anyway=asks_anyway(request))
        stored, check = connected.credential, connected.check
        return self.answer({"id": stored.id, "vendor": vendor, "validated": check.validated})

    def delete(self, request: Request, org_id: str, vendor: str, **path: str) -> Response:
        found = self.find_holder(self.organization, path).credential(vendor)
        delete_credential(actor=self.actor, credential=found)
        return self.answer()


class OrganizationCredential(HolderCredential):
    """POST, DELETE /api/orgs/:orgId/credentials/:vendor. Spec: §4.6, §8 · D62-D64"""

    gates = {
        "POST": Gate(
            Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE, token=TokenScope.ADMIN
        ),
        "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    find_holder: HolderFinder = staticmethod(of_organization)
