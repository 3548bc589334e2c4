"""Server access over the API. A path takes a service client's id in place of a person's. Spec: §4.5 · D34"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials.selectors import organization_vendors, people_vendors
from gateway.lib import ids
from gateway.lib.errors import Forbidden, Invalid
from gateway.web.api_view import OrgView
from gateway.web.fields import Moment, Texts, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from oauth_ext import selectors as clients
from oauth_ext.models import Client, ServiceClientVendor
from oauth_ext.services import service_client_vendors
from orgs import selectors
from orgs.models import Membership, Organization, ServerAccess
from orgs.roles import Role, TokenScope, may_read_server_access
from orgs.server_access_reasons import AccessReason, effective_server_access
from orgs.services import server_access

# Slugs in one body: bounds the size of the request.
MAX_VENDORS = 1_000


class GrantOut(serializers.Serializer[Any]):
    """`service`: a service client. Spec: D57"""

    principalType = serializers.ChoiceField(["user", "team", "service"])
    userId = serializers.UUIDField(allow_null=True, help_text="A person's id, or a service client's.")
    teamId = serializers.UUIDField(allow_null=True)
    vendor = serializers.CharField()
    grantedBy = serializers.UUIDField(allow_null=True)
    grantedAt = Timestamp()
    expiresAt = Timestamp(allow_null=True)


class AccessOut(serializers.Serializer[Any]):
    """One reason for one vendor. Spec: D58"""

    vendor = serializers.CharField()
    source = serializers.ChoiceField(["direct", "team", "default", "role"])  # type: ignore[assignment]
    teamId = serializers.UUIDField(source="team_id", allow_null=True)
    grantedAt = Timestamp(source="granted_at", allow_null=True)
    expiresAt = Timestamp(source="expires_at", allow_null=True)


class MemberGrantOut(serializers.Serializer[Any]):
    """Spec: D59"""

    userId = serializers.UUIDField()
    vendor = serializers.CharField()
    grantedAt = Timestamp()
    expiresAt = Timestamp(allow_null=True)


class TeamGrantOut(serializers.Serializer[Any]):
    """Spec: D59"""

    teamId = serializers.UUIDField(source="team_id")
    vendor = serializers.CharField()
    grantedAt = Timestamp(source="granted_at")
    expiresAt = Timestamp(source="expires_at", allow_null=True)


class EndIn(serializers.Serializer[Any]):
    """Without `expiresAt` the access has no end. Access that exists gets the end of the body. Spec: D169"""

    expiresAt = Moment(required=False, default=None, allow_null=True)


class VendorsIn(serializers.Serializer[Any]):
    """Spec: D173"""

    vendors = Texts(
        max_length=MAX_VENDORS,
        allow_null=True,
        help_text="null, for a service client only: it can use every vendor of the organization. [] means none."
        " Access that stays keeps its end.",
    )


class MemberVendorsOut(serializers.Serializer[Any]):
    """Spec: D59"""

    userId = serializers.UUIDField()
    vendors = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null for a service client that is not restricted."
    )


def server_access_body(row: ServerAccess | ServiceClientVendor) -> dict[str, Any]:
    """The input of GrantOut."""
    own = {
        "vendor": row.vendor,
        "grantedBy": row.granted_by_id,
        "grantedAt": row.granted_at,
        "expiresAt": row.expires_at,
    }
    if isinstance(row, ServiceClientVendor):
        return {"principalType": "service", "userId": row.client_id, "teamId": None, **own}
    return {
        "principalType": "team" if row.team_id else "user",
        "userId": row.membership.user_id if row.membership else None,
        "teamId": row.team_id,
        **own,
    }


class ServerAccessList(OrgView):
    """GET /api/orgs/:orgId/server-access. Spec: §4.5 · D57"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {"GET": Operation("List server access, oldest first", answer=GrantOut, many=True, paged=True)}

    def get(self, request: Request, org_id: str) -> Response:
        # Rows of people and teams come first, then those of service clients.
        of_clients = clients.service_client_vendor_rows(self.organization)
        return self.answer_page(selectors.server_access(self.organization), of_clients, as_body=server_access_body)


class MemberServerAccess(OrgView):
    """GET, PUT /api/orgs/:orgId/members/:userId/server-access. Spec: §4.5 · D58, D59"""

    gates = {"GET": Gate(Role.MEMBER, token=TokenScope.READ), "PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "GET": Operation("List what a member can use, and why", answer=AccessOut, many=True),
        "PUT": Operation(
            "Replace the server access of a member, or restrict a service client to these vendors",
            body=VendorsIn,
            answer=MemberVendorsOut,
        ),
    }

    def get(self, request: Request, org_id: str, user_id: str) -> Response:
        own = user_id == str(self.actor.id)
        if not may_read_server_access(Role(self.membership.role), themselves=own):
            raise Forbidden("You can view only your own access.")
        principal = _principal(self.organization, user_id)
        if isinstance(principal, Client):
            return self.answer(_access_of_client(principal, self.organization))
        return self.answer(effective_server_access(principal, people_vendors(self.organization)))

    def put(self, request: Request, org_id: str, user_id: str) -> Response:
        principal = _principal(self.organization, user_id)
        wanted = self.fields["vendors"]
        if isinstance(principal, Client):
            vendors = service_client_vendors.replace_client_vendors(
                actor=self.actor, organization=self.organization, client=principal, vendors=wanted
            )
            return self.answer({"userId": principal.id, "vendors": vendors})
        # A member always has a list; only service clients can be unrestricted.
        if wanted is None:
            raise Invalid(fields={"vendors": ["Only the restriction of a service client can be lifted."]})
        vendors = server_access.replace_member_vendors(
            actor=self.actor, organization=self.organization, user_id=principal.user_id, vendors=wanted
        )
        return self.answer({"userId": principal.user_id, "vendors": vendors})


class MemberVendor(OrgView):
    """PUT, DELETE /api/orgs/:orgId/members/:userId/server-access/:vendor. Spec: §4.5 · D9, D59"""

    gates = {"PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN), "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation("Give a member access to a vendor", body=EndIn, answer=MemberGrantOut),
        "DELETE": Operation(
            "Remove a member's access to a vendor; a service client without any access can use no vendor", status=204
        ),
    }

    def put(self, request: Request, org_id: str, user_id: str, vendor: str) -> Response:
        principal, end = _principal(self.organization, user_id), self.fields["expiresAt"]
        given: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "vendor": vendor,
            "expires_at": end,
        }
        row: ServerAccess | ServiceClientVendor
        if isinstance(principal, Client):
            key, row = principal.id, service_client_vendors.add_client_vendor(client=principal, **given)
        else:
            key = principal.user_id
            row = server_access.add_member_vendor(user_id=key, **given)
        return self.answer({"userId": key, "vendor": vendor, "grantedAt": row.granted_at, "expiresAt": row.expires_at})

    def delete(self, request: Request, org_id: str, user_id: str, vendor: str) -> Response:
        principal = _principal(self.organization, user_id)
        if isinstance(principal, Client):
            service_client_vendors.remove_client_vendor(
                actor=self.actor, organization=self.organization, client=principal, vendor=vendor
            )
        else:
            server_access.remove_member_vendor(
                actor=self.actor, organization=self.organization, user_id=principal.user_id, vendor=vendor
            )
        return self.answer()


class TeamVendor(OrgView):
    """PUT, DELETE /api/orgs/:orgId/teams/:teamId/server-access/:vendor. Spec: §4.5 · D9, D59"""

    gates = {"PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN), "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "PUT": Operation("Give a team access to a vendor", body=EndIn, answer=TeamGrantOut),
        "DELETE": Operation("Remove a team's access to a vendor", status=204),
    }

    def put(self, request: Request, org_id: str, team_id: str, vendor: str) -> Response:
        team = selectors.team(self.organization, team_id)
        return self.answer(
            server_access.add_team_vendor(
                actor=self.actor,
                organization=self.organization,
                team_id=team.id,
                vendor=vendor,
                expires_at=self.fields["expiresAt"],
            )
        )

    def delete(self, request: Request, org_id: str, team_id: str, vendor: str) -> Response:
        team = selectors.team(self.organization, team_id)
        server_access.remove_team_vendor(
            actor=self.actor, organization=self.organization, team_id=team.id, vendor=vendor
        )
        return self.answer()


def _principal(organization: Organization, id_in_path: str) -> Membership | Client:
    """A member by user id, or a service client by id or `svc_` name. Raises: NotFound."""
    key = ids.parse_id(id_in_path)
    member = selectors.members(organization).filter(user_id=key).first() if key else None
    return member or clients.service_client(organization, id_in_path)


def _access_of_client(client: Client, organization: Organization) -> list[AccessReason]:
    """The client's list; without a restriction, all vendors of the organization. Spec: D58, D173"""
    if clients.restricted_vendors(client.id) is None:
        return [AccessReason(vendor, "default") for vendor in organization_vendors(organization)]
    rows = clients.service_client_vendor_rows(organization).filter(client=client).order_by("vendor")
    return [AccessReason(row.vendor, "direct", granted_at=row.granted_at, expires_at=row.expires_at) for row in rows]
