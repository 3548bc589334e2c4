"""Redeem codes over the API: codes from before the single plan, which give nothing any more."""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request

from billing import redeem
from gateway.web.api_view import OrgView
from gateway.web.fields import Text
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs.roles import Role


class CodeIn(serializers.Serializer[Any]):
    code = Text(required=False, allow_blank=True, allow_null=True, default="", max_length=200)


class RedeemCode(OrgView):
    """POST /api/orgs/:orgId/redeem-code. Spec: §4.4, §8 · D94"""

    gates = {"POST": Gate(Role.OWNER, limit=settings.REDEEM_CODE)}
    operations = {
        "POST": Operation(
            "Redeem a legacy code",
            body=CodeIn,
            status=None,
            refusals={409: "The plan for this code is already active.", 422: "This code is unknown."},
        )
    }

    def post(self, request: Request, org_id: str) -> NoReturn:
        # Every code is refused; the error's status says why.
        redeem.redeem_code(code=self.fields["code"] or "")
