"""Checkout and portal over the API. Spec: §4.12 · D93"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing import checkout
from gateway.web.chosen_org import ChosenOrgIn, ChosenOrgView
from gateway.web.fields import Name
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs.roles import Role

_AWAY = {
    502: "The payment provider did not respond as expected.",
    503: "This service takes no payments, or too many requests are waiting for the payment provider.",
}


class CheckoutIn(ChosenOrgIn):
    coupon = Name(
        required=False,
        allow_blank=True,
        allow_null=True,
        default="",
        help_text="A promotion code, or the id of a coupon at the payment provider.",
    )


class PageOut(serializers.Serializer[Any]):
    url = serializers.URLField(help_text="The payment provider's page.")


class Checkout(ChosenOrgView):
    """POST /api/billing/checkout"""

    gates = {"POST": Gate(Role.OWNER, organization_limit=settings.PAYMENT_PAGES)}
    operations = {
        "POST": Operation(
            "Start a subscription on the payment provider's page",
            body=CheckoutIn,
            answer=PageOut,
            refusals={409: "The organization already has a subscription.", 422: "The coupon is not valid.", **_AWAY},
        )
    }

    def post(self, request: Request) -> Response:
        coupon = self.fields["coupon"] or ""
        url = checkout.start_checkout(actor=self.actor, organization=self.organization, coupon=coupon)
        return self.answer({"url": url})


class Portal(ChosenOrgView):
    """POST /api/billing/portal"""

    gates = {"POST": Gate(Role.OWNER, organization_limit=settings.PAYMENT_PAGES)}
    operations = {
        "POST": Operation(
            "Manage the subscription on the payment provider's page",
            body=ChosenOrgIn,
            answer=PageOut,
            refusals={409: "The organization has no account at the payment provider yet.", **_AWAY},
        )
    }

    def post(self, request: Request) -> Response:
        # Reads the body, so that a malformed one is refused.
        _ = self.fields
        return self.answer({"url": checkout.open_portal(actor=self.actor, organization=self.organization)})
