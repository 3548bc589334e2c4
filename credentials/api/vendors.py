"""The vendor catalog over the API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.catalog import registry
from gateway.catalog.vendor import CONNECTION_LEVELS
from gateway.web.api_view import ApiView
from gateway.web.gate import Gate
from gateway.web.operation import NAME, Operation
from orgs.roles import TokenScope


class FieldOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    secret = serializers.BooleanField()
    required = serializers.BooleanField()  # type: ignore[assignment]
    help = serializers.CharField()
    options = serializers.ListField(child=serializers.CharField(), help_text="Empty for free text.")


class VendorOut(serializers.Serializer[Any]):
    """Spec: D69"""

    slug = serializers.CharField()
    displayName = serializers.CharField(source="name")
    category = serializers.CharField()
    docsUrl = serializers.CharField(source="docs_url")
    fields = FieldOut(many=True)  # type: ignore[assignment]
    signIn = serializers.ListField(
        child=serializers.ChoiceField(CONNECTION_LEVELS),
        source="sign_in_levels",
        help_text="Who may be connected by signing in at the vendor; empty if no one can.",
    )


class VendorList(ApiView):
    """GET /api/vendors. Spec: D69"""

    gates = {"GET": Gate(token=TokenScope.READ)}
    operations = {"GET": Operation("List vendors that can be connected", answer=VendorOut, many=True, query=[NAME])}

    def get(self, request: Request) -> Response:
        name, vendors = self.asked_name(), registry.load().all()
        return self.answer([each for each in vendors if name in {None, each.name, each.slug}])
