from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing import entitlements
from gateway.web.api_view import ApiView, OrgView
from gateway.web.fields import Name, Text, Timestamp
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs import selectors
from orgs.models import Membership, Organization
from orgs.roles import ROLE_CHOICES, Role, TokenScope
from orgs.services import organizations


class SettingsOut(serializers.Serializer[Any]):
    defaultServerAccess = serializers.ChoiceField(Organization.DefaultServerAccess.values)


class OrganizationOut(serializers.Serializer[Any]):
    """An organization as seen by one of its members. Spec: §2 Organization · D31"""

    id = serializers.UUIDField()
    name = serializers.CharField()
    settings = SettingsOut()
    role = serializers.ChoiceField(ROLE_CHOICES, help_text="Your role.")
    subscriptionStatus = serializers.ChoiceField(["active", "lapsed"])
    createdAt = Timestamp()


class OrganizationIn(serializers.Serializer[Any]):
    name = Name()


class SettingsIn(serializers.Serializer[Any]):
    defaultServerAccess = Text()


def organization_body(organization: Organization, membership: Membership) -> dict[str, Any]:
    """The input of OrganizationOut."""
    return {
        "id": organization.id,
        "name": organization.name,
        "settings": {"defaultServerAccess": organization.default_server_access},
        "role": membership.role,
        "subscriptionStatus": entitlements.state(organization).value,
        "createdAt": organization.created_at,
    }


class OrganizationList(ApiView):
    """GET, POST /api/orgs. Spec: §4.4 · D31, D32, D36"""

    gates = {"GET": Gate(token=TokenScope.READ), "POST": Gate()}
    operations = {
        "GET": Operation("List your organizations, earliest first", answer=OrganizationOut, many=True),
        "POST": Operation(
            "Create an organization",
            body=OrganizationIn,
            answer=OrganizationOut,
            status=201,
            refusals={409: "You have reached the limit of organizations you can create."},
        ),
    }

    def get(self, request: Request) -> Response:
        # The subscriptions come along: one query for the whole list.
        rows = selectors.memberships(self.actor).select_related("organization__subscription")
        if self.token is not None:
            rows = rows.filter(pk=self.token.membership_id)
        return self.answer([organization_body(row.organization, row) for row in rows])

    def post(self, request: Request) -> Response:
        created = organizations.create_organization(actor=self.actor, name=self.fields["name"])
        return self.answer(organization_body(created, created.memberships.get(user=self.actor)))


class OrganizationDetail(OrgView):
    """GET, PATCH, DELETE /api/orgs/:orgId. Spec: §4.4 · D37, D38"""

    gates = {
        "GET": Gate(Role.MEMBER, token=TokenScope.READ),
        "PATCH": Gate(Role.OWNER, token=TokenScope.ADMIN),
        "DELETE": Gate(Role.OWNER),
    }
    operations = {
        "GET": Operation("Get an organization", answer=OrganizationOut),
        "PATCH": Operation("Rename an organization", body=OrganizationIn, answer=OrganizationOut),
        "DELETE": Operation("Delete an organization with everything in it", status=204),
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer(organization_body(self.organization, self.membership))

    def patch(self, request: Request, org_id: str) -> Response:
        renamed = organizations.rename_organization(
            actor=self.actor, organization=self.organization, name=self.fields["name"]
        )
        return self.answer(organization_body(renamed, self.membership))

    def delete(self, request: Request, org_id: str) -> Response:
        organizations.delete_organization(actor=self.actor, organization=self.organization)
        return self.answer()


class OrganizationSettings(OrgView):
    """PATCH /api/orgs/:orgId/settings. Spec: §4.4 · D38"""

    gates = {"PATCH": Gate(Role.OWNER, token=TokenScope.ADMIN)}
    operations = {"PATCH": Operation("Change the settings of an organization", body=SettingsIn, answer=OrganizationOut)}

    def patch(self, request: Request, org_id: str) -> Response:
        changed = organizations.update_settings(
            actor=self.actor,
            organization=self.organization,
            default_server_access=self.fields["defaultServerAccess"],
        )
        return self.answer(organization_body(changed, self.membership))
