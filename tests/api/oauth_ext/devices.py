"""A device of a service client, and the person who decides about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpResponse
from django.test import Client as Browser

from gateway.lib import secrets
from oauth_ext.models import DeviceGrant
from tests.api.oauth_ext.conftest import Service, post

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"


def start(fields: dict[str, str], **headers: str) -> HttpResponse:
    """POST /oauth/device_authorization."""
    return post(fields, "/oauth/device_authorization", **headers)


def credentials(service: Service) -> dict[str, str]:
    """The client's credentials as form fields."""
    return {"client_id": service.client.client_id, "client_secret": service.secret}


@dataclass
class Device:
    """A started device authorization."""

    service: Service
    device_code: str
    user_code: str

    @property
    def row(self) -> DeviceGrant:
        """The stored row."""
        return DeviceGrant.objects.get(device_code_sha256=secrets.sha256(self.device_code))

    def poll(self, **changes: str) -> HttpResponse:
        """Polls at once."""
        known = {"grant_type": GRANT_TYPE, "device_code": self.device_code, **credentials(self.service)}
        return post({**known, **changes})

    def patient_poll(self, **changes: str) -> HttpResponse:
        """Polls as if the interval had passed."""
        long_ago = self.row.created_at - timedelta(days=1)
        DeviceGrant.objects.filter(pk=self.row.pk, last_polled_at__isnull=False).update(last_polled_at=long_ago)
        return self.poll(**changes)

    def decide(self, browser: Browser, action: str = "approve", user_code: str | None = None) -> HttpResponse:
        """Send the last form of the device page."""
        return browser.post("/device", {"user_code": user_code or self.user_code, "action": action})


def start_device(service: Service, **fields: str) -> Device:
    """A device that waits for a decision."""
    answer = start({**credentials(service), **fields})
    assert answer.status_code == 200, answer.content
    body = answer.json()
    return Device(service, body["device_code"], body["user_code"])
