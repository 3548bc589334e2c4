"""Vendor grants over the API. A service client's id is taken where a person's is. Spec: §4.5 · D34"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials.selectors import people_vendors
from gateway.lib import ids
from gateway.lib.errors import Forbidden
from gateway.web.api_view import OrgView
from gateway.web.fields import Texts, Timestamp
from gateway.web.gate import Gate
from gateway.web.shape import Shape
from oauth_ext import selectors as clients
from oauth_ext.models import Client
from oauth_ext.services import vendor_grants
from orgs import selectors
from orgs.effective_access import Access, effective_access
from orgs.models import Membership, Organization
from orgs.roles import Role
from orgs.services import server_access

MAX_VENDORS = 1_000


class GrantOut(serializers.Serializer[Any]):
    """One grant. Spec: D57"""

    principalType = serializers.ChoiceField(["user", "team", "service"])
    userId = serializers.UUIDField(allow_null=True, help_text="A person's id, or a service client's.")
    teamId = serializers.UUIDField(allow_null=True)
    vendor = serializers.CharField()
    grantedBy = serializers.UUIDField(allow_null=True)
    grantedAt = Timestamp()


class AccessOut(serializers.Serializer[Any]):
    """One reason why somebody may use a vendor. Spec: D58"""

    vendor = serializers.CharField()
    source = serializers.ChoiceField(["direct", "team", "default", "role"])  # type: ignore[assignment]
    teamId = serializers.UUIDField(source="team_id", allow_null=True)
    grantedAt = Timestamp(source="granted_at", allow_null=True)


class MemberGrantOut(serializers.Serializer[Any]):
    """A member's grant. Spec: D59"""

    userId = serializers.UUIDField()
    vendor = serializers.CharField()
    grantedAt = Timestamp()


class TeamGrantOut(serializers.Serializer[Any]):
    """A team's grant. Spec: D59"""

    teamId = serializers.UUIDField(source="team_id")
    vendor = serializers.CharField()
    grantedAt = Timestamp(source="granted_at")


class VendorsIn(serializers.Serializer[Any]):
    """All vendors that are to be granted."""

    vendors = Texts(max_length=MAX_VENDORS)


class MemberVendorsOut(serializers.Serializer[Any]):
    """A member's grants, all of them. Spec: D59"""

    userId = serializers.UUIDField()
    vendors = serializers.ListField(child=serializers.CharField())


class ServerAccess(OrgView):
    """GET /api/orgs/:orgId/server-access. Spec: §4.5 · D57"""

    gates = {"GET": Gate(Role.ADMIN)}
    shapes = {"GET": Shape("Every grant, oldest first", answer=GrantOut, many=True)}

    def get(self, request: Request, org_id: str) -> Response:
        """Of people, teams and service clients."""
        found = [
            {
                "principalType": "team" if grant.team_id else "user",
                "userId": grant.membership.user_id if grant.membership else None,
                "teamId": grant.team_id,
                "vendor": grant.vendor,
                "grantedBy": grant.granted_by_id,
                "grantedAt": grant.granted_at,
            }
            for grant in selectors.grants(self.organization)
        ]
        found += [
            {
                "principalType": "service",
                "userId": grant.client.id,
                "teamId": None,
                "vendor": grant.vendor,
                "grantedBy": grant.granted_by_id,
                "grantedAt": grant.granted_at,
            }
            for grant in clients.vendor_grant_rows(self.organization)
        ]
        return self.answer(found)


class MemberServerAccess(OrgView):
    """GET, PUT /api/orgs/:orgId/members/:userId/server-access. Spec: §4.5 · D58, D59"""

    gates = {"GET": Gate(Role.MEMBER), "PUT": Gate(Role.ADMIN)}
    shapes = {
        "GET": Shape("What a member may use, and why", answer=AccessOut, many=True),
        "PUT": Shape("Replace all of a member's grants", body=VendorsIn, answer=MemberVendorsOut),
    }

    def get(self, request: Request, org_id: str, user_id: str) -> Response:
        """A member sees their own; admins everybody's."""
        if user_id != str(self.actor.id) and not self.membership.has_role(Role.ADMIN):
            raise Forbidden("You may look at your own access only.")
        principal = _principal(self.organization, user_id)
        if isinstance(principal, Client):
            rows = clients.vendor_grant_rows(self.organization).filter(client=principal).order_by("vendor")
            return self.answer([Access(row.vendor, "direct", granted_at=row.granted_at) for row in rows])
        return self.answer(effective_access(principal, people_vendors(self.organization)))

    def put(self, request: Request, org_id: str, user_id: str) -> Response:
        """Exactly these."""
        principal = _principal(self.organization, user_id)
        wanted = self.fields["vendors"]
        if isinstance(principal, Client):
            vendors = vendor_grants.replace_client_grants(
                actor=self.actor, organization=self.organization, client=principal, vendors=wanted
            )
            return self.answer({"userId": principal.id, "vendors": vendors})
        vendors = server_access.replace_member_grants(
            actor=self.actor, organization=self.organization, user_id=principal.user_id, vendors=wanted
        )
        return self.answer({"userId": principal.user_id, "vendors": vendors})


class MemberVendor(OrgView):
    """PUT, DELETE /api/orgs/:orgId/members/:userId/server-access/:vendor. Spec: §4.5 · D9, D59"""

    gates = {"PUT": Gate(Role.ADMIN), "DELETE": Gate(Role.ADMIN)}
    shapes = {
        "PUT": Shape("Grant a vendor to a member", answer=MemberGrantOut),
        "DELETE": Shape(
            "Take a member's grant back", status=204, refusals={409: "The last vendor on a service client's list."}
        ),
    }

    def put(self, request: Request, org_id: str, user_id: str, vendor: str) -> Response:
        """Grant."""
        principal = _principal(self.organization, user_id)
        if isinstance(principal, Client):
            own = vendor_grants.grant_client(
                actor=self.actor, organization=self.organization, client=principal, vendor=vendor
            )
            return self.answer({"userId": principal.id, "vendor": vendor, "grantedAt": own.granted_at})
        grant = server_access.grant_member(
            actor=self.actor, organization=self.organization, user_id=principal.user_id, vendor=vendor
        )
        return self.answer({"userId": principal.user_id, "vendor": vendor, "grantedAt": grant.granted_at})

    def delete(self, request: Request, org_id: str, user_id: str, vendor: str) -> Response:
        """Revoke; 204 also when there was nothing."""
        principal = _principal(self.organization, user_id)
        if isinstance(principal, Client):
            vendor_grants.revoke_client(
                actor=self.actor, organization=self.organization, client=principal, vendor=vendor
            )
        else:
            server_access.revoke_member(
                actor=self.actor, organization=self.organization, user_id=principal.user_id, vendor=vendor
            )
        return self.answer()


class TeamVendor(OrgView):
    """PUT, DELETE /api/orgs/:orgId/teams/:teamId/server-access/:vendor. Spec: §4.5 · D9, D59"""

    gates = {"PUT": Gate(Role.ADMIN), "DELETE": Gate(Role.ADMIN)}
    shapes = {
        "PUT": Shape("Grant a vendor to a team", answer=TeamGrantOut),
        "DELETE": Shape("Take a team's grant back", status=204),
    }

    def put(self, request: Request, org_id: str, team_id: str, vendor: str) -> Response:
        """Grant."""
        team = selectors.team(self.organization, team_id)
        return self.answer(
            server_access.grant_team(actor=self.actor, organization=self.organization, team_id=team.id, vendor=vendor)
        )

    def delete(self, request: Request, org_id: str, team_id: str, vendor: str) -> Response:
        """Revoke; 204 also when there was nothing."""
        team = selectors.team(self.organization, team_id)
        server_access.revoke_team(actor=self.actor, organization=self.organization, team_id=team.id, vendor=vendor)
        return self.answer()


def _principal(organization: Organization, id_in_path: str) -> Membership | Client:
    """A member by the person's id, or a service client by its id or `svc_` name.

    Raises: NotFound.
    """
    key = ids.parse_id(id_in_path)
    member = selectors.members(organization).filter(user_id=key).first() if key else None
    return member or clients.service_client(organization, id_in_path)
