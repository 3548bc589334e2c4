"""Named keys over the API. Answers hold metadata only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials import selectors
from credentials.api.vendor_fields import ANYWAY, KEPT, REFUSED, FlatFields, StoredOut, asks_anyway
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.rejections import summaries_with_rejection
from credentials.services.credentials import delete_credential
from credentials.services.keys import update_named_key
from gateway.catalog.registry import known_vendor
from gateway.lib.ids import known_id
from gateway.lib.rows import required_row
from gateway.web.api_view import OrgView
from gateway.web.fields import Name, Text, Timestamp
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import NAME, Operation
from orgs.roles import Role, TokenScope
from orgs.selectors import team
from proxy.control_plane.connect_vendor import connect_vendor, replace_key

_TAKEN = {409: "Another key has this name, the team is bound to another key, or the limit of keys is reached."}


class KeyOut(serializers.Serializer[Any]):
    """Spec: §2 · D65"""

    id = serializers.UUIDField()
    name = serializers.CharField()
    teamId = serializers.UUIDField(source="team_id", allow_null=True)
    createdAt = Timestamp(source="created_at")
    # An extension: the specification does not have this field.
    rejectedAt = Timestamp(
        source="rejected_at",
        default=None,
        allow_null=True,
        help_text="When the vendor last rejected a call with this key; null once it has accepted a later call.",
    )


class _Flat(serializers.DictField):
    def to_internal_value(self, data: object) -> dict[str, Any]:
        checked: dict[str, Any] = FlatFields().to_internal_value(data)
        return checked


class KeyIn(serializers.Serializer[Any]):
    name = Name()
    teamId = Text(required=False, allow_null=True)
    # The service checks the fields against the catalog.
    fields = _Flat(child=serializers.CharField())  # type: ignore[assignment]


class KeyUpdateIn(serializers.Serializer[Any]):
    """`teamId` null unbinds the key; without `teamId` the binding stays."""

    name = Name()
    teamId = Text(required=False, allow_null=True)


class KeyList(OrgView):
    """GET, POST /api/orgs/:orgId/credentials/:vendor/keys. Spec: §4.6, §8 · D64, D65"""

    gates = {
        "GET": Gate(Role.ADMIN, token=TokenScope.READ),
        "POST": Gate(
            Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_KEY_CREATE, token=TokenScope.ADMIN
        ),
    }
    operations = {
        "GET": Operation("List named keys of a vendor", answer=KeyOut, many=True, query=[NAME]),
        "POST": Operation("Create a named key", body=KeyIn, answer=KeyOut, status=201, refusals={**_TAKEN, **REFUSED}),
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        rows = summaries_with_rejection(self.organization, vendor=vendor)
        keys = [row for row in rows if row.scope is CredentialScope.NAMED_KEY]
        # Keys of a vendor that left the catalog stay visible. Otherwise an unknown slug is 404.
        if not keys:
            known_vendor(vendor)
        name = self.asked_name()
        return self.answer([row for row in keys if name in {None, row.name}])

    def post(self, request: Request, org_id: str, vendor: str) -> Response:
        known = known_vendor(vendor)
        team_id = self.fields.get("teamId")
        bound_to = team(self.organization, team_id) if team_id is not None else None
        connected = connect_vendor(
            actor=self.actor,
            organization=self.organization,
            vendor=known,
            scope=CredentialScope.NAMED_KEY,
            fields=self.fields["fields"],
            team=bound_to,
            name=self.fields["name"],
        )
        return self.answer(connected.credential)


class KeyDetail(OrgView):
    """POST, PUT, DELETE /api/orgs/:orgId/credentials/:vendor/keys/:keyId. Spec: §4.6 · D9, D65, D170"""

    gates = {
        "POST": Gate(
            Role.ADMIN,
            plan=PlanFunction.CREDENTIALS,
            organization_limit=settings.VENDOR_REQUESTS,
            token=TokenScope.ADMIN,
        ),
        "PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN),
        "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    operations = {
        "POST": Operation(
            "Replace the fields of a named key, which keeps its id, name and team",
            body=FlatFields,
            answer=StoredOut,
            query=[ANYWAY],
            refusals={**REFUSED, **KEPT},
        ),
        "PUT": Operation("Rename a named key or bind it to a team", body=KeyUpdateIn, answer=KeyOut, refusals=_TAKEN),
        "DELETE": Operation("Delete a named key; its team falls back to the next credential", status=204),
    }

    def post(self, request: Request, org_id: str, vendor: str, key_id: str) -> Response:
        # An extension: the specification has no route for new content of a key.
        replaced = replace_key(
            actor=self.actor,
            organization=self.organization,
            vendor=known_vendor(vendor),
            key_id=self._key(vendor, key_id).id,
            fields=self.fields,
            anyway=asks_anyway(request),
        )
        return self.answer({"id": replaced.credential.id, "vendor": vendor, "validated": replaced.check.validated})

    def put(self, request: Request, org_id: str, vendor: str, key_id: str) -> Response:
        key = self._key(vendor, key_id)
        return self.answer(
            update_named_key(
                actor=self.actor,
                organization=self.organization,
                key_id=key.id,
                vendor=vendor,
                name=self.fields["name"],
                team_id=self._team_id(key),
            )
        )

    def delete(self, request: Request, org_id: str, vendor: str, key_id: str) -> Response:
        delete_credential(actor=self.actor, credential=self._key(vendor, key_id))
        return self.answer()

    def _key(self, vendor: str, key_id: str) -> Credential:
        return required_row(selectors.named_keys(self.organization, vendor).filter(pk=known_id(key_id)))

    def _team_id(self, key: Credential) -> UUID | None:
        if "teamId" not in self.fields:
            return key.team_id
        wanted = self.fields["teamId"]
        return None if wanted is None else known_id(wanted)
