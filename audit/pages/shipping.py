"""Log shipping: the list of destinations and the wizard."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from audit.pages.shipping_forms import DestinationForm
from audit.pages.shipping_view import shown
from audit.shipping.destinations import destinations_of
from audit.shipping.platforms.platform import Platform
from audit.shipping.platforms.registry import PLATFORMS
from billing.errors import SubscriptionRequired
from gateway.lib.errors import NotFound
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.org_page import OrgPage
from gateway.web.rate import RateLimited
from orgs.roles import Role
from orgs.services.log_destinations import create_destination

LIST, ONE = "audit_pages:log-shipping", "audit_pages:log-destination"


class ShippingPage(OrgPage):
    nav_route = LIST

    def refused(self, refusal: RateLimited | SubscriptionRequired) -> HttpResponse:
        """Without a plan, destinations can still be paused and deleted: their records leave the service."""
        if isinstance(refusal, SubscriptionRequired) and self.request.method in ("GET", "HEAD"):
            context = {"rows": destinations_of(self.organization.id)}
            return self.page("audit/shipping_ended.html", context, status=refusal.status)
        return super().refused(refusal)


class LogShippingPage(ShippingPage):
    """GET /orgs/:orgId/log-shipping. Spec: §4.13 · D95, D147"""

    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING)}
    title = gettext_lazy("Log shipping")

    def get(self, request: HttpRequest) -> HttpResponse:
        with log_read(self.organization.id):
            rows = shown(destinations_of(self.organization.id))
        is_full = len(rows) >= settings.LOG_DESTINATIONS_PER_ORGANIZATION
        context = {"rows": rows, "is_full": is_full, "most": settings.LOG_DESTINATIONS_PER_ORGANIZATION}
        return self.page("audit/shipping.html", context)


class ChoosePlatformPage(ShippingPage):
    """GET /orgs/:orgId/log-shipping/new. Spec: D140"""

    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING)}
    title = gettext_lazy("New destination")

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("audit/shipping_platforms.html", {"platforms": PLATFORMS.values()})


class NewDestinationPage(OrgFormPage[DestinationForm], ShippingPage):
    """GET, POST /orgs/:orgId/log-shipping/new/:platform. Spec: §2 · D95-D97"""

    gates = {
        "GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
    }
    title = gettext_lazy("New destination")
    template = "audit/shipping_new.html"
    already_sent = gettext_lazy("That form was already sent. The destination is in the list.")

    @cached_property
    def platform(self) -> Platform:
        platform = PLATFORMS.get(self.kwargs["platform"])
        if platform is None:
            raise NotFound
        return platform

    def new_form(self, data: QueryDict | None = None) -> DestinationForm:
        return DestinationForm(self.platform, data, initial={"endpointUrl": self.platform.preset_url})

    def save(self, form: DestinationForm) -> HttpResponse:
        made = create_destination(
            actor=self.actor,
            organization=self.organization,
            label=form.cleaned_data["label"],
            platform=self.platform.value,
            endpoint_url=form.cleaned_data["endpointUrl"],
            config=form.config(),
        )
        return self.done(
            gettext("%(label)s receives all records from now on. Send a test record to check.") % {"label": made.label},
            ONE,
            made.pk,
        )

    def context(self) -> dict[str, Any]:
        return {"platform": self.platform}
