from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.web.api_view import ApiView
from gateway.web.fields import Name
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs.roles import TokenScope
from orgs.services.profile import update_profile


class ProfileOut(serializers.Serializer[Any]):
    """Spec: §2 Profile"""

    id = serializers.UUIDField()
    email = serializers.CharField()
    name = serializers.CharField(help_text="Display name, else full name, else the local part of the email address.")
    firstName = serializers.CharField(source="first_name")
    lastName = serializers.CharField(source="last_name")
    displayName = serializers.CharField(source="display_name")


class ProfileIn(serializers.Serializer[Any]):
    """Absent members stay as they are; null and "" clear the name. Spec: D46"""

    firstName = Name(required=False, allow_null=True, allow_blank=True)
    lastName = Name(required=False, allow_null=True, allow_blank=True)
    displayName = Name(required=False, allow_null=True, allow_blank=True)


_COLUMNS = {"firstName": "first_name", "lastName": "last_name", "displayName": "display_name"}


class Profile(ApiView):
    """GET, PATCH /api/profile. Spec: §4.3 · D46"""

    gates = {"GET": Gate(token=TokenScope.READ), "PATCH": Gate()}
    operations = {
        "GET": Operation("Get the signed-in person, or the person of the token", answer=ProfileOut),
        "PATCH": Operation("Change your own names", body=ProfileIn, answer=ProfileOut),
    }

    def get(self, request: Request) -> Response:
        return self.answer(self.actor)

    def patch(self, request: Request) -> Response:
        names = {_COLUMNS[member]: value or "" for member, value in self.fields.items()}
        return self.answer(update_profile(user=self.actor, **names))
