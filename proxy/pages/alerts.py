"""Alerts: the causes that go on, the settings, and the latest messages. Spec: D166 · docs/decisions/0096"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from audit.shipping.trial import TooManyTests
from gateway.lib import clock
from gateway.lib.errors import Conflict
from gateway.lib.translated import translated
from gateway.mail.outbox import is_on
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from orgs.alert_terms import ALL_KINDS, URL_CHARACTERS
from orgs.models import Alert, AlertMessage, AlertSettings
from orgs.notices import recipient_of
from orgs.roles import Role
from orgs.services import alert_settings
from orgs.services.alert_settings import Changes, change_settings, rotate_secret, settings_of
from proxy.control_plane.alerts import words
from proxy.control_plane.alerts.listing import messages_of, open_alerts_of, told_by, told_in
from proxy.control_plane.alerts.trial import Trial, send_test

PAGE = "proxy_pages:alerts"
SHOWN = 20


class AlertSettingsForm(forms.Form):
    """Members of the same names as over the API."""

    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Send an alert when"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, data: QueryDict | None = None, **options: Any) -> None:
        super().__init__(data, auto_id="%s", **options)
        fields: dict[str, Any] = self.fields
        fields["kinds"].choices = [(kind.value, words.NAMES[kind]) for kind in ALL_KINDS]
        fields["byMail"] = forms.BooleanField(label=gettext_lazy("Email to owners and admins"), required=False)
        fields["webhookUrl"] = forms.CharField(
            label=gettext_lazy("Webhook address"),
            required=False,
            max_length=URL_CHARACTERS,
            help_text=gettext_lazy(
                "Alerts are sent there immediately, with a signature. A new address gets a new secret."
            ),
        )
        fields["quietFrom"] = _time_field(gettext_lazy("From"))
        fields["quietUntil"] = _time_field(gettext_lazy("Until"))
        fields["timeZone"] = forms.CharField(
            label=gettext_lazy("Time zone"),
            widget=forms.TextInput(attrs={"list": "time-zones", "spellcheck": "false"}),
        )


def _time_field(label: Any) -> forms.CharField:
    return forms.CharField(label=label, widget=forms.TimeInput(attrs={"type": "time"}))


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert that goes on, in words. `told_at`: None while nobody was told."""

    headline: str
    detail: str
    url: str
    began_at: datetime
    told_at: datetime | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    message: AlertMessage
    headline: str
    url: str


class AlertsPage(OrgFormPage[AlertSettingsForm]):
    """GET, POST /orgs/:orgId/settings/alerts. Each button is a form with an `action` of its own."""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN),
        "POST rotate": Gate(Role.ADMIN),
        "POST test": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
    }
    title = gettext_lazy("Alerts")
    nav_route = PAGE
    form_class = AlertSettingsForm
    template = "proxy/alerts.html"

    @cached_property
    def row(self) -> AlertSettings:
        return settings_of(self.organization)

    def initial(self) -> dict[str, Any]:
        return {
            "kinds": [kind.value for kind in alert_settings.told_kinds(self.row)],
            "byMail": self.row.by_mail,
            "webhookUrl": self.row.webhook_url,
            "quietFrom": alert_settings.as_clock(self.row.quiet_from),
            "quietUntil": alert_settings.as_clock(self.row.quiet_until),
            "timeZone": self.row.time_zone,
        }

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        actions = {"rotate": self._rotate, "test": self._test}
        action = actions.get(request.POST.get("action", ""))
        return action() if action else super().post(request, **path)

    def save(self, form: AlertSettingsForm) -> HttpResponse:
        typed = form.cleaned_data
        changed = change_settings(
            actor=self.actor,
            organization=self.organization,
            changes=Changes(
                kinds=typed["kinds"],
                by_mail=typed["byMail"],
                webhook_url=typed["webhookUrl"],
                quiet_from=typed["quietFrom"],
                quiet_until=typed["quietUntil"],
                time_zone=typed["timeZone"],
            ),
        )
        if changed.secret:
            return self._show_once(changed.secret, rotated=False)
        return self.done(gettext("Alert settings saved."), PAGE)

    def _rotate(self) -> HttpResponse:
        try:
            changed = rotate_secret(actor=self.actor, organization=self.organization)
        except Conflict as refusal:
            messages.error(self.request, translated(refusal.message))
            return redirect(PAGE, self.organization.pk)
        return self._show_once(changed.secret, rotated=True)

    def _show_once(self, secret: str, *, rotated: bool) -> HttpResponse:
        context = {"webhook_secret": secret, "rotated": rotated, "back_url": reverse(PAGE, args=[self.organization.pk])}
        return self.page("proxy/alert_secret.html", context, status=201)

    def _test(self) -> HttpResponse:
        try:
            trial = send_test(actor=self.actor, organization=self.organization)
        except (Conflict, TooManyTests) as refusal:
            messages.error(self.request, translated(refusal.message))
        else:
            self._say(trial)
        return redirect(PAGE, self.organization.pk)

    def _say(self, trial: Trial) -> None:
        if trial.mailed_to:
            text = gettext("A test was sent to %(address)s.")
            messages.success(self.request, text % {"address": trial.mailed_to})
        if trial.webhook:
            messages.success(self.request, gettext("The webhook accepted the test."))
        elif trial.webhook is False:
            text = gettext("The webhook didn’t accept the test: %(answer)s")
            messages.error(self.request, text % {"answer": translated(trial.answer)})

    def context(self) -> dict[str, Any]:
        return {
            "open_alerts": [_alert_row(each) for each in open_alerts_of(self.organization)[:SHOWN]],
            "sent": [_message_row(each) for each in messages_of(self.organization)[:SHOWN]],
            "explained": [(kind.value, words.EXPLAINED[kind]) for kind in ALL_KINDS],
            "has_webhook": bool(self.row.webhook_url),
            "previous_secret_ends_at": alert_settings.previous_secret_end(self.row, clock.now()),
            "may_get_mail": is_on() and recipient_of(self.actor) is not None,
            "time_zones": alert_settings.COMMON_ZONES,
        }


def _alert_row(alert: Alert) -> AlertRow:
    told = told_by(alert)
    url = words.page_of(alert.organization_id, told.kind, alert.cause)
    told_at = alert.told_at if alert.told_level else None
    return AlertRow(words.headline(told), words.detail(told), url, alert.began_at, told_at)


def _message_row(message: AlertMessage) -> MessageRow:
    if not message.kind:
        return MessageRow(message, gettext("Test message"), "")
    told = told_in(message)
    return MessageRow(message, words.headline(told), words.page_of(message.organization_id, told.kind, message.cause))
