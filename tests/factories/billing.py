"""The payment provider's events, in the shapes of its documented API, and its signature."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from typing import Any

from django.http import HttpResponse
from django.test import Client as Browser

from gateway.lib import clock

SECRET = "whsec_of_the_suite"
SETTINGS = {
    "BILLING_MODE": "stripe",
    "STRIPE_SECRET_KEY": "sk_test_of_the_suite",
    "STRIPE_WEBHOOK_SECRETS": (SECRET,),
    "STRIPE_API_BASE": "http://127.0.0.1:9",
    "STRIPE_API_IS_PRIVATE": True,
    "STRIPE_PRICE_ID": "price_flat",
}
PATH = "/api/webhooks/stripe"
DAY_S = 86_400
_ids = itertools.count(1)


def subscription(
    status: str = "active",
    *,
    key: str = "sub_1",
    customer: Any = "cus_1",
    is_ending: bool = False,
    cancel_at: int | None = None,
    start: int = 1_000,
    end: int = 1_000 + 30 * DAY_S,
    is_old: bool = False,
) -> dict[str, Any]:
    """`is_old`: as before 2025-03, with the period on the subscription."""
    period = {"current_period_start": start, "current_period_end": end}
    item: dict[str, Any] = {"id": "si_1", "object": "subscription_item", "quantity": 1}
    return {
        "id": key,
        "object": "subscription",
        "customer": customer,
        "status": status,
        "cancel_at_period_end": is_ending,
        "cancel_at": cancel_at,
        "items": {"object": "list", "has_more": False, "data": [item if is_old else {**item, **period}]},
        "livemode": False,
        **(period if is_old else {}),
    }


def invoice(
    key: str = "in_1", *, subscription: Any = "sub_1", customer: str = "cus_1", is_old: bool = False
) -> dict[str, Any]:
    """`is_old`: as before 2025-03, where the invoice names its subscription itself."""
    made: dict[str, Any] = {"id": key, "object": "invoice", "customer": customer}
    if is_old:
        return {**made, "subscription": subscription}
    parent = {"type": "subscription_details", "subscription_details": {"subscription": subscription, "metadata": {}}}
    return {**made, "parent": parent if subscription else None}


def checkout_session(
    organization: str, *, key: str = "cs_1", customer: str = "cus_1", metadata: dict[str, str] | None = None
) -> dict[str, Any]:
    """A completed session. `metadata`: as our sessions have it, unless it is given."""
    return {
        "id": key,
        "object": "checkout.session",
        "mode": "subscription",
        "customer": customer,
        "client_reference_id": organization,
        "metadata": {"organization_id": organization} if metadata is None else metadata,
        "subscription": "sub_1",
        "status": "complete",
    }


def event(
    kind: str,
    found: dict[str, Any],
    *,
    created: int | None = None,
    key: str | None = None,
    previous: dict[str, Any] | None = None,
    **members: Any,
) -> dict[str, Any]:
    """An event as the provider sends it; `created` is now by default."""
    data = {"object": found, **({"previous_attributes": previous} if previous is not None else {})}
    return {
        "id": key or f"evt_{next(_ids)}",
        "object": "event",
        "type": kind,
        "created": int(clock.now().timestamp()) if created is None else created,
        "livemode": False,
        "api_version": "2026-08-26.dahlia",
        "data": data,
        **members,
    }


def told(status: str, **options: Any) -> dict[str, Any]:
    """customer.subscription.updated; options of `event` and of `subscription`."""
    names = {"created", "previous", "livemode", "account", "api_version", "event_id"}
    of_event = {name: options.pop(name) for name in names & options.keys()}
    if "event_id" in of_event:
        of_event["key"] = of_event.pop("event_id")
    return event("customer.subscription.updated", subscription(status, **options), **of_event)


def signature(body: bytes, *, secret: str = SECRET, at: int | None = None) -> str:
    """The header of the provider."""
    signed_at = int(clock.now().timestamp()) if at is None else at
    digest = hmac.new(secret.encode(), f"{signed_at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={signed_at},v1={digest}"


def deliver(
    found: dict[str, Any] | bytes, *, header: str | None = None, address: str = "10.7.0.1", **options: Any
) -> HttpResponse:
    """One request of the provider, signed unless `header` is given."""
    body = found if isinstance(found, bytes) else json.dumps(found).encode()
    headers = {"Stripe-Signature": signature(body, **options) if header is None else header}
    return Browser().generic(  # type: ignore[return-value]
        "POST", PATH, body, content_type="application/json", headers=headers, REMOTE_ADDR=address
    )
