"""A destination of each platform, and the receiver that its requests are led to."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction

from audit.models import LogDestination
from audit.shipping import destinations
from gateway.lib.guarded_client import Response, send
from tests.api.audit.rows import ORG
from tests.api.audit.shipping.stage import ANA
from tests.receivers import Receiver

SECRET = "dont-show-me-8c1f"
SIGNING = "whsec_ZG9udC1zaG93LW1lLThjMWYtYW5kLW1vcmU="
API_KEY = "a2V5LWlkOmRvbnQtc2hvdy1tZS04YzFm"
TENANT = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
CLIENT = "5f2b4d7e-9c1a-4e2b-8f63-1d0a7c9e4b21"
RULE = "dcr-00000000000000000000000000000000"


@dataclass(frozen=True)
class Case:
    """`secrets` are the values that must be shown nowhere; `id_path` leads to an event's id in what was received."""

    kind: str
    url: str
    config: dict[str, str]
    settings: dict[str, Any]
    id_path: tuple[str, ...]
    secrets: tuple[str, ...] = (SECRET,)

    def receiver(self) -> Receiver:
        return Receiver(self.kind, **self.settings)

    def destination(self, org_id: uuid.UUID = ORG) -> LogDestination:
        with transaction.atomic():
            return destinations.create(
                org_id=org_id,
                actor=ANA,
                label=f"To {self.kind}",
                platform=self.kind,
                endpoint_url=self.url,
                config=self.config,
            )


CASES = {
    case.kind: case
    for case in (
        Case(
            "elasticsearch",
            "https://es.example.com",
            {"apiKey": API_KEY},
            {"api_key": API_KEY},
            ("_source", "event", "id"),
            (API_KEY,),
        ),
        Case(
            "loki",
            "https://loki.example.com",
            {"username": "12345", "password": SECRET, "tenant": "team-a"},
            {"username": "12345", "password": SECRET, "tenant": "team-a"},
            ("line", "id"),
        ),
        Case("splunk", "https://splunk.example.com:8088", {"token": SECRET}, {"token": SECRET}, ("event", "event_id")),
        Case("better_stack", "", {"token": SECRET}, {"token": SECRET}, ("eventId",)),
        Case("logscale", "https://cloud.humio.com", {"token": SECRET}, {"token": SECRET}, ("event", "event", "id")),
        Case(
            "otlp",
            "https://otlp.example.com",
            {"headers": f"X-Key: {SECRET}"},
            {"headers": {"X-Key": SECRET}},
            ("attributes", "log.record.uid"),
        ),
        Case(
            "azure_monitor",
            "https://mcp-gateway-a1b2.eastus-1.ingest.monitor.azure.com",
            {"tenantId": TENANT, "clientId": CLIENT, "clientSecret": SECRET, "dcrImmutableId": RULE},
            {"tenant": TENANT, "client_id": CLIENT, "client_secret": SECRET, "rule": RULE},
            ("EventId",),
        ),
        Case(
            "webhook",
            "https://hooks.example.com/logs",
            {"secret": SIGNING},
            {"secrets": [SIGNING]},
            ("payload", "events", "id"),
            (SIGNING, SIGNING.removeprefix("whsec_")),
        ),
    )
}


def led_to(receiver: Receiver) -> Callable[..., Response]:
    """The guarded client, with the receiver in the place of every host."""

    def request(method: str, url: str, **options: Any) -> Response:
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        return send(method, f"{receiver.url}{parts.path}{query}", **options)

    return request
