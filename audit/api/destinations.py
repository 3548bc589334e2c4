"""Destinations of log shipping over the API. Spec: §2, §4.13 · D95-D97, D140"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit.models import LogDestination
from audit.query_values import moment_of
from audit.shipping.destinations import Changes, destination_of, destinations_of, masked_config
from audit.shipping.platforms.registry import PLATFORMS
from audit.shipping.trial import send_test
from audit.shipping.waiting import COUNTED, lag_of
from audit.shipping_models import URL_CHARACTERS, DestinationStatus
from gateway.lib import clock
from gateway.lib.ids import known_id
from gateway.web.api_view import OrgView
from gateway.web.fields import Name, Text, Timestamp, TrueOrFalse
from gateway.web.gate import Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.operation import Operation
from orgs.roles import Role, TokenScope
from orgs.services import log_destinations

_PLATFORM_CHARACTERS = 100


class DestinationOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    label = serializers.CharField()  # type: ignore[assignment]
    platform = serializers.ChoiceField(list(PLATFORMS))
    endpointUrl = serializers.CharField()
    config = serializers.DictField(
        child=serializers.CharField(), help_text="For a secret, its first four characters and eight asterisks."
    )
    enabled = serializers.BooleanField()
    status = serializers.ChoiceField([status.value for status in DestinationStatus])
    lastDeliveryAt = Timestamp(allow_null=True)
    lastError = serializers.CharField(
        allow_null=True, help_text="The platform's last error message; cleared when a delivery succeeds."
    )
    createdAt = Timestamp()
    lagRecords = serializers.IntegerField(help_text=f"Records waiting, {COUNTED:,} at most.")
    lagSeconds = serializers.IntegerField(help_text="The age of the oldest waiting record; 0 if there is none.")
    delivered = serializers.IntegerField(
        help_text="Records since the destination was created; likewise the next two fields."
    )
    refused = serializers.IntegerField(help_text="Records the platform refused permanently.")
    skipped = serializers.IntegerField(help_text="Records that waited for more than a day.")


class DestinationIn(serializers.Serializer[Any]):
    label = Name()  # type: ignore[assignment]
    platform = Text(max_length=_PLATFORM_CHARACTERS, help_text="A value of `platform`, or the name of the product.")
    endpointUrl = Text(
        required=False,
        allow_blank=True,
        max_length=URL_CHARACTERS,
        help_text="Optional for platforms with a preset address.",
    )
    config = serializers.DictField(required=False, help_text="The platform's own keys; all values are strings.")


class DestinationChange(serializers.Serializer[Any]):
    label = Name(required=False)  # type: ignore[assignment]
    endpointUrl = Text(required=False, max_length=URL_CHARACTERS)
    config = serializers.DictField(
        required=False, help_text="Keys that are missing or still masked are kept; empty ones are removed."
    )
    enabled = TrueOrFalse(required=False, help_text="If false, nothing is sent until it is set to true again.")


class ReplayIn(serializers.Serializer[Any]):
    since = Text(max_length=40, help_text="A date, or an RFC 3339 time; a time without a zone is UTC.")

    def validate_since(self, value: str) -> datetime:
        try:
            return moment_of(value)
        except ValueError as fault:
            raise serializers.ValidationError(str(fault)) from fault


class TrialOut(serializers.Serializer[Any]):
    accepted = serializers.BooleanField()
    answer = serializers.CharField(help_text="The platform's response, or why there is none.")


def destination_body(destination: LogDestination) -> dict[str, Any]:
    """The input of DestinationOut."""
    lag = lag_of(destination)
    return {
        "id": destination.id,
        "label": destination.label,
        "platform": destination.platform,
        "endpointUrl": destination.endpoint_url,
        "config": masked_config(destination),
        "enabled": destination.enabled,
        "status": destination.status,
        "lastDeliveryAt": destination.last_delivery_at,
        "lastError": destination.last_error or None,
        "createdAt": destination.created_at,
        "lagRecords": lag.records,
        "lagSeconds": lag.seconds(clock.now()),
        "delivered": destination.delivered,
        "refused": destination.refused,
        "skipped": destination.skipped,
    }


class DestinationList(OrgView):
    """GET, POST /api/orgs/:orgId/log-shipping. Spec: §4.13 · D95"""

    gates = {
        "GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, token=TokenScope.READ),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation("List log destinations by label", answer=DestinationOut, many=True, paged=True),
        "POST": Operation(
            "Create a destination, which receives records from now on",
            body=DestinationIn,
            answer=DestinationOut,
            status=201,
            refusals={409: "The organization has reached its limit of destinations."},
        ),
    }

    def get(self, request: Request, org_id: str) -> Response:
        with log_read(self.organization.id):
            return self.answer_page(destinations_of(self.organization.id), as_body=destination_body)

    def post(self, request: Request, org_id: str) -> Response:
        created = log_destinations.create_destination(
            actor=self.actor,
            organization=self.organization,
            label=self.fields["label"],
            platform=self.fields["platform"],
            endpoint_url=self.fields.get("endpointUrl", ""),
            config=self.fields.get("config", {}),
        )
        return self.answer(destination_body(created))


class _DestinationView(OrgView):
    @property
    def subject(self) -> dict[str, Any]:
        """Arguments that each service for a destination takes. Raises: NotFound."""
        destination_id = known_id(self.kwargs["destination_id"])
        return {"actor": self.actor, "organization": self.organization, "destination_id": destination_id}

    def destination(self) -> LogDestination:
        """Raises: NotFound."""
        return destination_of(self.organization.id, known_id(self.kwargs["destination_id"]))


class DestinationDetail(_DestinationView):
    """GET, PATCH, DELETE /api/orgs/:orgId/log-shipping/:destinationId. Spec: D95"""

    # Without a plan a destination can still be paused and deleted: its records leave the service.
    gates = {
        "GET": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, token=TokenScope.READ),
        "PATCH": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, token=TokenScope.ADMIN),
        "DELETE": Gate(Role.ADMIN, token=TokenScope.ADMIN),
    }
    operations = {
        "GET": Operation("Get a destination", answer=DestinationOut),
        "PATCH": Operation("Change, pause or resume a destination", body=DestinationChange, answer=DestinationOut),
        "DELETE": Operation("Delete a destination", status=204),
    }

    def gate_of(self, http: HttpRequest) -> Gate | None:
        return Gate(Role.ADMIN) if http.method == "PATCH" and _pauses(http.body) else super().gate_of(http)

    def get(self, request: Request, **path: str) -> Response:
        with log_read(self.organization.id):
            return self.answer(destination_body(self.destination()))

    def patch(self, request: Request, **path: str) -> Response:
        fields = self.fields
        changes = Changes(fields.get("label"), fields.get("endpointUrl"), fields.get("config"), fields.get("enabled"))
        return self.answer(destination_body(log_destinations.change_destination(**self.subject, changes=changes)))

    def delete(self, request: Request, **path: str) -> Response:
        log_destinations.delete_destination(**self.subject)
        return self.answer()


def _pauses(body: bytes) -> bool:
    """Whether it pauses and changes nothing else."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return bool(msgspec.json.decode(body) == {"enabled": False})
    return False


class DestinationTest(_DestinationView):
    """POST /api/orgs/:orgId/log-shipping/:destinationId/test. Spec: D95"""

    gates = {
        "POST": Gate(
            Role.ADMIN,
            plan=PlanFunction.LOG_SHIPPING,
            organization_limit=settings.VENDOR_REQUESTS,
            token=TokenScope.ADMIN,
        )
    }
    operations = {"POST": Operation("Send a test record and wait for the platform's answer", answer=TrialOut)}

    def post(self, request: Request, **path: str) -> Response:
        return self.answer(send_test(self.destination(), actor=self.actor.as_actor()))


class DestinationReplay(_DestinationView):
    """POST /api/orgs/:orgId/log-shipping/:destinationId/replay"""

    gates = {"POST": Gate(Role.ADMIN, plan=PlanFunction.LOG_SHIPPING, token=TokenScope.ADMIN)}
    operations = {
        "POST": Operation("Deliver the records since a given time again", body=ReplayIn, answer=DestinationOut)
    }

    def post(self, request: Request, **path: str) -> Response:
        replayed = log_destinations.replay_destination(**self.subject, since=self.fields["since"])
        return self.answer(destination_body(replayed))
