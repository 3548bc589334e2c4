"""POST /api/webhooks/stripe: events of the payment provider, whose signature authorizes them. Spec: D90-D92"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from billing import signature
from billing.errors import InvalidEvent, InvalidSignature
from billing.facts import UnreadableEvent, parse_event
from billing.mode import is_live, require_provider
from billing.provider_events import store_event
from gateway.lib import clock, strict_json
from gateway.lib.client_address import address_key
from gateway.lib.errors import MethodNotAllowed
from gateway.web import rate
from gateway.web.api_json import BodyTooLarge

log = structlog.get_logger(__name__)
_RECEIVED = {"received": True}


@csrf_exempt
def webhook(request: HttpRequest) -> JsonResponse:
    """Events that change nothing are received too: the provider would repeat them for days.

    Raises: MethodNotAllowed, RateLimited, BodyTooLarge, BillingUnavailable, InvalidSignature, InvalidEvent.
    """
    # A window of its own: a burst of events takes nothing from the people behind the same address.
    admission = rate.count_under(settings.PROVIDER_EVENTS, address_key(rate.address_of(request)))
    if request.method != "POST":
        raise MethodNotAllowed("POST")
    body = _body(request)
    require_provider()
    _check_signature(request, body)
    event = _document(body)
    if not _is_of_other_account(event):
        _store(event)
    answer = JsonResponse(_RECEIVED)
    rate.add_headers(answer, admission)
    return answer


def _body(request: HttpRequest) -> bytes:
    """Raises: BodyTooLarge, also for a body without a declared length."""
    body = request.read(settings.WEBHOOK_BODY_BYTES + 1)
    if len(body) > settings.WEBHOOK_BODY_BYTES:
        raise BodyTooLarge
    return body


def _check_signature(request: HttpRequest, body: bytes) -> None:
    now_s, header = clock.now().timestamp(), request.headers.get("Stripe-Signature", "")
    if not signature.is_valid(header, body, secrets=settings.STRIPE_WEBHOOK_SECRETS, now_s=now_s):
        raise InvalidSignature


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = strict_json.loads(body)
    except strict_json.StrictJSONError as fault:
        raise InvalidEvent(f"The event cannot be read: {fault.reason}.") from None
    if not isinstance(found, dict):
        raise InvalidEvent
    return found


def _is_of_other_account(event: Mapping[str, Any]) -> bool:
    """Of a connected account, or of test mode where the key is live, and the reverse."""
    is_other = event.get("account") is not None or event.get("livemode") is not is_live()
    if is_other:
        log.warning("billing.event_of_other_account", livemode=event.get("livemode") is True)
    return is_other


def _store(found: Mapping[str, Any]) -> None:
    """Raises: InvalidEvent. Another fault of storing becomes a 500, after which the provider sends the event again."""
    try:
        event = parse_event(found)
    except UnreadableEvent as fault:
        log.error("billing.event_unreadable", member=str(fault))
        raise InvalidEvent(f"The event's {fault} cannot be read.") from None
    if event is None:
        return
    ahead_s = event.created - clock.now().timestamp()
    # It would outrank all that follow. Clocks of test mode may be set to any time.
    if is_live() and ahead_s > signature.TOLERANCE_S:
        raise InvalidEvent("The event is from the future.")
    store_event(event)
