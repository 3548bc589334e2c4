"""Addresses of tests only: the service's, and two views of an organization that is not in the path."""

from __future__ import annotations

from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.coordination.rules import Rule
from gateway.urls import urlpatterns as service
from gateway.web.chosen_org import ChosenOrgIn, ChosenOrgView
from gateway.web.gate import Gate, PlanFunction
from gateway.web.operation import Operation
from orgs.roles import Role

LIMIT = Rule("chosen-org-of-tests", limit=1_000, window_s=60)


class OrderIn(ChosenOrgIn):
    """A body with a member besides."""

    coupon = serializers.CharField()


class OrganizationOut(serializers.Serializer[Any]):
    """The organization that the view worked for."""

    id = serializers.UUIDField()


class Report(ChosenOrgView):
    """GET: admins of a paying organization. DELETE: owners."""

    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.TEAMS, limit=LIMIT), "DELETE": Gate(Role.OWNER)}
    operations = {
        "GET": Operation("Look", answer=OrganizationOut),
        "DELETE": Operation("Remove", answer=OrganizationOut),
    }

    def get(self, request: Request) -> Response:
        """The chosen organization."""
        return self.answer(self.organization)

    def delete(self, request: Request) -> Response:
        """The chosen organization."""
        return self.answer(self.organization)


class Order(ChosenOrgView):
    """POST: owners of a paying organization."""

    gates = {"POST": Gate(Role.OWNER, plan=PlanFunction.TEAMS)}
    operations = {"POST": Operation("Order", body=OrderIn, answer=OrganizationOut, status=201)}

    def post(self, request: Request) -> Response:
        """The chosen organization, once the body is known to be right."""
        assert self.fields["coupon"]
        return self.answer(self.organization)


CHOSEN_VIEWS: list[type[ChosenOrgView]] = [Report, Order]
urlpatterns = [
    path("api/test/report", Report.as_view()),
    path("api/test/order", Order.as_view()),
    *service,
]
handler400 = "gateway.site.errors.bad_request"
handler403 = "gateway.site.errors.permission_denied"
handler404 = "gateway.site.errors.not_found"
handler500 = "gateway.site.errors.server_error"
