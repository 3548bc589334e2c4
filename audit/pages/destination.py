"""One destination of log shipping: its page with a button for each action, and its deletion."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from audit.models import LogDestination
from audit.pages.shipping import LIST, ONE, ShippingPage
from audit.pages.shipping_forms import DestinationForm, ReplayForm
from audit.pages.shipping_view import shown
from audit.shipping.destinations import Changes, destination_of, masked_config
from audit.shipping.platforms.registry import PLATFORMS
from audit.shipping.trial import TooManyTests, send_test
from gateway.lib.errors import Invalid
from gateway.lib.translated import translated
from gateway.web.form_errors import show_on
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.typed_name import TypedNameForm
from orgs.roles import Role
from orgs.services.log_destinations import change_destination, delete_destination, replay_destination

SHOWN_REFUSALS = 5


class _OneDestination(ShippingPage):
    @cached_property
    def destination(self) -> LogDestination:
        """Raises: NotFound."""
        return destination_of(self.organization.id, self.kwargs["destination_id"])

    @property
    def subject(self) -> dict[str, Any]:
        """Arguments that each service for a destination takes."""
        return {"actor": self.actor, "organization": self.organization, "destination_id": self.destination.pk}


class DestinationPage(OrgFormPage[DestinationForm], _OneDestination):
    """GET, POST /orgs/:orgId/log-shipping/:destinationId. Each button is a form with an `action` of its own."""

    gates = {
        "GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
        "POST pause": Gate(Role.ADMIN),
        "POST test": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, organization_limit=settings.VENDOR_REQUESTS),
        "POST replay": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING),
    }
    title = gettext_lazy("Destination")
    template = "audit/shipping_destination.html"

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
        changes = Changes(typed["label"], typed["endpointUrl"], form.config())
        return self._change(changes, gettext("%(label)s saved. The next attempt starts now."))

    def _pause(self) -> HttpResponse:
        return self._change(Changes(enabled=False), gettext("%(label)s is paused. Nothing is sent to it."))

    def _resume(self) -> HttpResponse:
        return self._change(Changes(enabled=True), gettext("%(label)s has resumed."))

    def _change(self, changes: Changes, text: str) -> HttpResponse:
        """`text`: the message, with `label`."""
        changed = change_destination(**self.subject, changes=changes)
        return self.done(text % {"label": changed.label}, ONE, changed.pk)

    def _test(self) -> HttpResponse:
        label = self.destination.label
        try:
            trial = send_test(self.destination, actor=self.actor.as_actor())
        except TooManyTests as refusal:
            messages.warning(self.request, translated(refusal.message))
        else:
            if trial.accepted:
                messages.success(
                    self.request,
                    gettext("%(label)s accepted the test record: %(answer)s")
                    % {"label": label, "answer": trial.answer},
                )
            else:
                messages.error(
                    self.request,
                    gettext("%(label)s didn’t accept the test record: %(answer)s")
                    % {"label": label, "answer": trial.answer},
                )
        return redirect(ONE, self.organization.id, self.destination.pk)

    def _replay(self) -> HttpResponse:
        form = ReplayForm(self.request.POST)
        if form.is_valid():
            try:
                row = replay_destination(**self.subject, since=form.cleaned_data["since"])
            except Invalid as refusal:
                show_on(form, refusal)
            else:
                return self.done(
                    gettext("%(label)s will receive all records since that time again.") % {"label": row.label},
                    ONE,
                    row.pk,
                )
        return self.show(self.new_form(), status=422, replay_form=form)

    def show(self, form: DestinationForm, *, status: int = 200, **extra: Any) -> HttpResponse:
        with log_read(self.organization.id):
            (row,) = shown([self.destination])
            refused = list(self.destination.refused_records.order_by("-pk")[:SHOWN_REFUSALS])
        context: dict[str, Any] = {"row": row, "refused": refused, "replay_form": ReplayForm(), **extra}
        return super().show(form, status=status, **context)


class DeleteDestinationPage(OrgFormPage[TypedNameForm], _OneDestination):
    """GET, POST /orgs/:orgId/log-shipping/:destinationId/delete. Asks for its name."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Delete destination")
    template = "audit/shipping_delete.html"
    refusal_status = None

    def new_form(self, data: QueryDict | None = None) -> TypedNameForm:
        return TypedNameForm(self.destination.label, data)

    def save(self, form: TypedNameForm) -> HttpResponse:
        delete_destination(**self.subject)
        return self.done(
            gettext("%(label)s was deleted. Nothing more is sent to it.") % {"label": self.destination.label}, LIST
        )

    def context(self) -> dict[str, Any]:
        return {"destination": self.destination, "platform": PLATFORMS[self.destination.platform]}
