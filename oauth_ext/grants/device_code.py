"""The device code grant: a service client polls for a person's decision.

   pending --approved--> approved --poll--> consumed
      |---denied-------> denied: access_denied at each poll
      '---expires_at---> expired: expired_token

Spec: §3, §4.2, §7 Device grant errors · RFC 8628 3.4 · D128
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc8628.errors import (
    AccessDenied,
    AuthorizationPendingError,
    ExpiredTokenError,
    SlowDownError,
)

from gateway.lib import clock, secrets
from oauth_ext import lock_order
from oauth_ext.grants.token_request import ConsumingGrant, required
from oauth_ext.models import Decision, DeviceGrant
from oauth_ext.services.token_families import begin_family


class DeviceCode(ConsumingGrant):
    """Gives tokens of the service client once, after the approval."""

    def validate_token_request(self, request: Any) -> None:
        device_code = required(request, "device_code")
        self.validate_client_authentication(request)
        self.validate_grant_type(request)
        device = _locked(request.client, device_code)
        now = clock.now()
        if device.expires_at <= now:
            raise ExpiredTokenError(description="The device code has expired. Start again.")
        # D128: binding, expiry, interval, decision, in this order.
        _check_interval(device, now)
        if device.decision == Decision.DENIED:
            raise AccessDenied(description="The person denied the request.")
        if device.decision != Decision.APPROVED:
            raise AuthorizationPendingError(description="The request has not been decided yet. Keep polling.")
        device.consumed_at = now
        device.save(update_fields=["consumed_at"])
        _grant(request, device)


def _locked(client: Any, device_code: str) -> DeviceGrant:
    """Raises: InvalidGrantError for an unknown or used code, and for another client's."""
    invalid = errors.InvalidGrantError(description="The device code is unknown or was already used.")
    rows = DeviceGrant.objects.filter(device_code_sha256=secrets.sha256(device_code), client=client)
    found = rows.first()
    if found is None:
        raise invalid
    is_locked = lock_order.lock(org_id=client.organization_id, user_id=None, client_pk=client.pk)
    device = DeviceGrant.objects.select_for_update().filter(pk=found.pk, consumed_at=None).first()
    if not is_locked or device is None:
        raise invalid
    return device


def _check_interval(device: DeviceGrant, now: datetime) -> None:
    """Raises: SlowDownError for an early poll, which lengthens the interval of all later ones."""
    interval = timedelta(seconds=device.interval_s)
    too_early = device.last_polled_at is not None and now - device.last_polled_at < interval
    device.last_polled_at = now
    if too_early:
        device.interval_s += settings.DEVICE_SLOW_DOWN_S
    device.save(update_fields=["last_polled_at", "interval_s"])
    if too_early:
        raise SlowDownError(description=f"Wait {device.interval_s} seconds between polls.")


def _grant(request: Any, device: DeviceGrant) -> None:
    client, scopes = request.client, device.scope.split()
    request.user, request.organization_id = None, client.organization_id
    request.scopes, request.resource = scopes, device.resource
    request.family = begin_family(
        client=client,
        user=None,
        org_id=client.organization_id,
        approved_by_id=device.decided_by_id,
        scopes=scopes,
        resources=device.resource,
    )
