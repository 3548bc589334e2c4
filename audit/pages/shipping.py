"""Log shipping: the list of destinations, one destination with its buttons, the wizard and the deletion."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.functional import cached_property

from audit.models import LogDestination
from audit.pages.shipping_forms import DestinationForm, ReplayForm
from audit.pages.shipping_view import shown
from audit.shipping.destinations import Changes, destination_of, destinations_of, masked_config
from audit.shipping.platforms.platform import Platform
from audit.shipping.platforms.registry import PLATFORMS
from audit.shipping.trial import TooManyTests, send_test
from billing.errors import SubscriptionRequired
from gateway.lib.errors import Invalid, NotFound
from gateway.web.form_errors import show_on
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.org_page import OrgPage
from gateway.web.rate import RateLimited
from gateway.web.typed_name import TypedNameForm
from orgs.roles import Role
from orgs.services.log_destinations import (
    change_destination,
    create_destination,
    delete_destination,
    replay_destination,
)

SHOWN_REFUSALS = 5
_LIST, _ONE = "audit_pages:log-shipping", "audit_pages:log-destination"


class _ShippingPage(OrgPage):
    nav_route = _LIST

    def refused(self, refusal: RateLimited | SubscriptionRequired) -> HttpResponse:
        """Without a plan, destinations can still be paused and deleted: their records leave the service."""
        if isinstance(refusal, SubscriptionRequired) and self.request.method in ("GET", "HEAD"):
            context = {"rows": destinations_of(self.organization.id)}
            return self.page("audit/shipping_ended.html", context, status=refusal.status)
        return super().refused(refusal)


class LogShippingPage(_ShippingPage):
    """GET /orgs/:orgId/log-shipping. Spec: §4.13 · D95, D147"""

    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING)}
    title = "Log shipping"

    def get(self, request: HttpRequest) -> HttpResponse:
        with log_read(self.organization.id):
            rows = shown(destinations_of(self.organization.id))
        is_full = len(rows) >= settings.LOG_DESTINATIONS_PER_ORGANIZATION
        context = {"rows": rows, "is_full": is_full, "most": settings.LOG_DESTINATIONS_PER_ORGANIZATION}
        return self.page("audit/shipping.html", context)


class ChoosePlatformPage(_ShippingPage):
    """GET /orgs/:orgId/log-shipping/new. Spec: D140"""

    gates = {"GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING)}
    title = "New destination"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("audit/shipping_platforms.html", {"platforms": PLATFORMS.values()})


class NewDestinationPage(OrgFormPage[DestinationForm], _ShippingPage):
    """GET, POST /orgs/:orgId/log-shipping/new/:platform. Spec: §2 · D95-D97"""

    gates = {
        "GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
    }
    title = "New destination"
    template = "audit/shipping_new.html"
    already_sent = "That form was already sent. The destination is in the list."

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
        return self.done(f"{made.label} gets the records from now on. Send a test record to see it.", _ONE, made.pk)

    def context(self) -> dict[str, Any]:
        return {"platform": self.platform}


class DestinationPage(OrgFormPage[DestinationForm], _ShippingPage):
    """GET, POST /orgs/:orgId/log-shipping/:destinationId. Each button is a form with an `action` of its own."""

    gates = {
        "GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
        "POST": Gate(Role.ADMIN),
        "POST test": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, organization_limit=settings.VENDOR_REQUESTS),
        "POST replay": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
    }
    title = "Destination"
    template = "audit/shipping_destination.html"

    @cached_property
    def destination(self) -> LogDestination:
        return destination_of(self.organization.id, self.kwargs["destination_id"])

    @property
    def _subject(self) -> dict[str, Any]:
        """Arguments that each service for a destination takes."""
        return {"actor": self.actor, "organization": self.organization, "destination_id": self.destination.pk}

    def new_form(self, data: QueryDict | None = None) -> DestinationForm:
        row = self.destination
        initial = {"label": row.label, "endpointUrl": row.endpoint_url}
        return DestinationForm(PLATFORMS[row.platform], data, stored=masked_config(row), initial=initial)

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        actions = {"pause": self._pause, "resume": self._resume, "test": self._test, "replay": self._replay}
        action = actions.get(request.POST.get("action", ""))
        return action() if action else super().post(request, **path)

    def save(self, form: DestinationForm) -> HttpResponse:
        typed = form.cleaned_data
        changed = change_destination(
            **self._subject, changes=Changes(typed["label"], typed["endpointUrl"], form.config())
        )
        return self.done(f"{changed.label} is changed. The next attempt is made at once.", _ONE, changed.pk)

    def _pause(self) -> HttpResponse:
        changed = change_destination(**self._subject, changes=Changes(enabled=False))
        return self.done(f"{changed.label} is paused. Nothing is sent to it.", _ONE, changed.pk)

    def _resume(self) -> HttpResponse:
        changed = change_destination(**self._subject, changes=Changes(enabled=True))
        return self.done(f"{changed.label} is resumed.", _ONE, changed.pk)

    def _test(self) -> HttpResponse:
        label = self.destination.label
        try:
            trial = send_test(self.destination, actor=self.actor.as_actor())
        except TooManyTests as refusal:
            messages.warning(self.request, refusal.message)
        else:
            if trial.accepted:
                messages.success(self.request, f"{label} accepted the test record: {trial.answer}")
            else:
                messages.error(self.request, f"{label} did not accept the test record: {trial.answer}")
        return redirect(_ONE, self.organization.id, self.destination.pk)

    def _replay(self) -> HttpResponse:
        form = ReplayForm(self.request.POST)
        if form.is_valid():
            try:
                row = replay_destination(**self._subject, since=form.cleaned_data["since"])
            except Invalid as refusal:
                show_on(form, refusal)
            else:
                return self.done(f"{row.label} gets the records from then on again.", _ONE, row.pk)
        return self.show(self.new_form(), status=422, replay_form=form)

    def show(self, form: DestinationForm, *, status: int = 200, **extra: Any) -> HttpResponse:
        with log_read(self.organization.id):
            (row,) = shown([self.destination])
            refused = list(self.destination.refused_records.order_by("-pk")[:SHOWN_REFUSALS])
        context: dict[str, Any] = {"row": row, "refused": refused, "replay_form": ReplayForm(), **extra}
        return super().show(form, status=status, **context)


class DeleteDestinationPage(OrgFormPage[TypedNameForm], _ShippingPage):
    """GET, POST /orgs/:orgId/log-shipping/:destinationId/delete. Asks for its name."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Delete destination"
    template = "audit/shipping_delete.html"
    refusal_status = None

    @cached_property
    def destination(self) -> LogDestination:
        return destination_of(self.organization.id, self.kwargs["destination_id"])

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        return TypedNameForm(self.destination.label, data)

    def save(self, form: TypedNameForm) -> HttpResponse:
        label = self.destination.label
        delete_destination(actor=self.actor, organization=self.organization, destination_id=self.destination.pk)
        return self.done(f"{label} is deleted. Nothing is sent to it any more.", _LIST)

    def context(self) -> dict[str, Any]:
        return {"destination": self.destination, "platform": PLATFORMS[self.destination.platform]}
