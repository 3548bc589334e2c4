"""Alerts over the API: settings, causes and messages. Spec: D166 · docs/decisions/0096"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.lib import clock
from gateway.web.api_view import OrgView
from gateway.web.fields import Text, Texts, Timestamp, TrueOrFalse
from gateway.web.gate import Gate
from gateway.web.operation import Operation
from orgs.alert_terms import ALL_KINDS, URL_CHARACTERS, Moment
from orgs.models import AlertMessage, AlertSettings
from orgs.roles import Role, TokenScope
from orgs.services import alert_settings
from orgs.services.alert_settings import Changed, Changes
from proxy.control_plane.alerts.listing import alerts_of, messages_of
from proxy.control_plane.alerts.trial import send_test

KINDS = [kind.value for kind in ALL_KINDS]
_TIME_CHARACTERS, _ZONE_CHARACTERS = 5, 64


class AlertSettingsOut(serializers.Serializer[Any]):
    kinds = serializers.ListField(child=serializers.ChoiceField(KINDS), help_text="The kinds of alerts that are sent.")
    byMail = serializers.BooleanField(help_text="To owners and admins, each of whom can unsubscribe.")
    webhookUrl = serializers.CharField(help_text="Empty without a webhook.")
    previousSecretEndsAt = Timestamp(allow_null=True, help_text="Until then, the previous secret also signs.")
    quietFrom = serializers.CharField(help_text="HH:MM. If equal to quietUntil, there are no quiet hours.")
    quietUntil = serializers.CharField()
    timeZone = serializers.CharField(help_text="Of the quiet hours, such as Europe/Berlin.")


class ChangedAlertSettingsOut(AlertSettingsOut):
    secret = serializers.CharField(
        allow_null=True, help_text="The signing secret, if this request created it. No other response contains it."
    )


class AlertSettingsChange(serializers.Serializer[Any]):
    kinds = Texts(required=False, max_length=len(KINDS))
    byMail = TrueOrFalse(required=False)
    webhookUrl = Text(
        required=False,
        allow_blank=True,
        max_length=URL_CHARACTERS,
        help_text="A different address gets a new secret. An empty one removes the webhook.",
    )
    quietFrom = Text(required=False, max_length=_TIME_CHARACTERS)
    quietUntil = Text(required=False, max_length=_TIME_CHARACTERS)
    timeZone = Text(required=False, max_length=_ZONE_CHARACTERS)


class AlertOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(KINDS)
    cause = serializers.CharField(help_text="The vendor, client id or destination that it is about.")
    label = serializers.CharField(help_text="Its name.")  # type: ignore[assignment]
    detail = serializers.CharField(help_text="The most recent reason; may be empty.")
    level = serializers.IntegerField(help_text="Rises as the cause gets more urgent; 1 at first.")
    beganAt = Timestamp(source="began_at")
    endedAt = Timestamp(source="ended_at", allow_null=True, help_text="null while it lasts.")
    toldAt = Timestamp(source="told_at", allow_null=True, help_text="null if no one was notified.")


class AlertMessageOut(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Also the id of the webhook’s event.")
    alertId = serializers.UUIDField(source="alert_id", allow_null=True, help_text="null for a test.")
    kind = serializers.ChoiceField(["", *KINDS], help_text="Empty for a test.")
    moment = serializers.ChoiceField([moment.value for moment in Moment])
    label = serializers.CharField()  # type: ignore[assignment]
    createdAt = Timestamp(source="created_at")
    mails = serializers.IntegerField(help_text="Addresses it was sent to by email.")
    webhook = serializers.ChoiceField([state.value for state in AlertMessage.Delivery])
    reason = serializers.CharField(help_text="Why the webhook did not accept it; empty otherwise.")


class AlertTestOut(serializers.Serializer[Any]):
    mailedTo = serializers.CharField(source="mailed_to", help_text="Your address; empty if no email was sent.")
    webhook = serializers.BooleanField(
        allow_null=True, help_text="Whether the webhook accepted it; null without a webhook."
    )
    answer = serializers.CharField(help_text="Why the webhook did not accept it; empty otherwise.")


def settings_body(row: AlertSettings, secret: str = "") -> dict[str, Any]:
    """The input of AlertSettingsOut and ChangedAlertSettingsOut."""
    return {
        "kinds": [kind.value for kind in alert_settings.told_kinds(row)],
        "byMail": row.by_mail,
        "webhookUrl": row.webhook_url,
        "secret": secret or None,
        "previousSecretEndsAt": alert_settings.previous_secret_end(row, clock.now()),
        "quietFrom": alert_settings.as_clock(row.quiet_from),
        "quietUntil": alert_settings.as_clock(row.quiet_until),
        "timeZone": row.time_zone,
    }


class _SettingsView(OrgView):
    def _changed(self, changed: Changed) -> Response:
        return self.answer(settings_body(changed.row, changed.secret))


class AlertSettingsView(_SettingsView):
    """GET, PATCH /api/orgs/:orgId/alert-settings. Spec: D166"""

    gates = {
        "GET": Gate(Role.ADMIN, token=TokenScope.READ),
        "PATCH": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation("Get alert settings", answer=AlertSettingsOut),
        "PATCH": Operation(
            "Change alert settings", body=AlertSettingsChange, answer=ChangedAlertSettingsOut, shows_secret=True
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer(settings_body(alert_settings.settings_of(self.organization)))

    def patch(self, request: Request, org_id: str) -> Response:
        typed = self.fields
        changes = Changes(
            kinds=typed.get("kinds"),
            by_mail=typed.get("byMail"),
            webhook_url=typed.get("webhookUrl"),
            quiet_from=typed.get("quietFrom"),
            quiet_until=typed.get("quietUntil"),
            time_zone=typed.get("timeZone"),
        )
        return self._changed(
            alert_settings.change_settings(actor=self.actor, organization=self.organization, changes=changes)
        )


class AlertSecretRotation(_SettingsView):
    """POST /api/orgs/:orgId/alert-settings/rotate-secret"""

    gates = {"POST": Gate(Role.ADMIN, token=TokenScope.ADMIN)}
    operations = {
        "POST": Operation(
            "Rotate the signing secret of the alert webhook",
            answer=ChangedAlertSettingsOut,
            shows_secret=True,
            refusals={409: "There is no webhook."},
        )
    }

    def post(self, request: Request, org_id: str) -> Response:
        return self._changed(alert_settings.rotate_secret(actor=self.actor, organization=self.organization))


class AlertTest(OrgView):
    """POST /api/orgs/:orgId/alert-settings/test"""

    gates = {"POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS, token=TokenScope.ADMIN)}
    operations = {
        "POST": Operation(
            "Send a test alert to yourself and to the webhook",
            answer=AlertTestOut,
            refusals={409: "There is no webhook and no email."},
        )
    }

    def post(self, request: Request, org_id: str) -> Response:
        return self.answer(send_test(actor=self.actor, organization=self.organization))


class AlertList(OrgView):
    """GET /api/orgs/:orgId/alerts"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {"GET": Operation("List alerts, newest first", answer=AlertOut, many=True, paged=True)}

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer_page(alerts_of(self.organization))


class AlertMessageList(OrgView):
    """GET /api/orgs/:orgId/alert-messages"""

    gates = {"GET": Gate(Role.ADMIN, token=TokenScope.READ)}
    operations = {"GET": Operation("List alert messages, newest first", answer=AlertMessageOut, many=True, paged=True)}

    def get(self, request: Request, org_id: str) -> Response:
        return self.answer_page(messages_of(self.organization))
