"""The questions that a vendor may ask an organization's callers, over the API. docs/decisions/0118"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credentials import selectors
from credentials.services.vendor_question_rules import change_question_rules
from gateway.catalog.registry import known_vendor
from gateway.web.api_view import OrgView
from gateway.web.fields import TrueOrFalse
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs.roles import Role, TokenScope

_ELICITATION = "Whether it may show a form or a page to the person at the client."
_SAMPLING = "Whether it may use the model of the client."
_ROOTS = "Whether it may ask for the list of the client's folders."


class VendorQuestionRulesOut(serializers.Serializer[Any]):
    vendor = serializers.CharField()
    elicitation = serializers.BooleanField(help_text=_ELICITATION)
    sampling = serializers.BooleanField(help_text=_SAMPLING)
    roots = serializers.BooleanField(help_text=_ROOTS)


class VendorQuestionRulesIn(serializers.Serializer[Any]):
    elicitation = TrueOrFalse(help_text=_ELICITATION)
    sampling = TrueOrFalse(help_text=_SAMPLING)
    roots = TrueOrFalse(help_text=_ROOTS)


class VendorQuestionRules(OrgView):
    """GET, PUT /api/orgs/:orgId/vendor-questions/:vendor."""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ), "PUT": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "GET": Operation("Show what a vendor may ask callers", answer=VendorQuestionRulesOut),
        "PUT": Operation(
            "Change what a vendor may ask callers",
            body=VendorQuestionRulesIn,
            answer=VendorQuestionRulesOut,
            refusals={404: "There is no such vendor."},
        ),
    }

    def get(self, request: Request, org_id: str, vendor: str) -> Response:
        return self.answer(selectors.question_rules(self.organization.id, known_vendor(vendor).slug))

    def put(self, request: Request, org_id: str, vendor: str) -> Response:
        allowed = [kind for kind, is_allowed in self.fields.items() if is_allowed]
        found = known_vendor(vendor)
        rules = change_question_rules(actor=self.actor, organization=self.organization, vendor=found, allowed=allowed)
        return self.answer(rules)
