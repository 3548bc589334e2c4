"""A payment provider that answers with given objects, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

CREATED = 1_790_000_000
# It must not be stored: the holder confirms a payment with it.
CLIENT_SECRET = "pi_1_secret_ThatConfirmsAPayment"


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, list[str]]
    key: str


@dataclass
class Provider:
    """`answers`: what a path gets, an object or (status, body)."""

    origin: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def add(self, thing: dict[str, Any]) -> dict[str, Any]:
        """The object can be read, by itself and in the list of its kind."""
        folder = f"/v1/{thing['object']}s"
        self.answers[f"{folder}/{thing['id']}"] = thing
        kept = [each for each in self.answers.get(folder, {"data": []})["data"] if each["id"] != thing["id"]]
        self.answers[folder] = listed(folder, [*kept, thing])
        return thing

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        found = self.answers.get(asked.path)
        if isinstance(found, tuple):
            return found
        if found is None:
            return 404, json.dumps(
                {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such object"}}
            ).encode()
        if customer := asked.query.get("customer"):
            found = {**found, "data": [each for each in found["data"] if each["customer"] == customer[0]]}
        return 200, json.dumps(found).encode()

    def paths(self) -> list[str]:
        return [each.path for each in self.asked]


@contextmanager
def provider_process() -> Iterator[Provider]:
    """It listens in a thread of its own, on a port of its own."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            parts = urlsplit(self.path)
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            asked = Asked(self.command, parts.path, parse_qs(parts.query), key)
            provider.asked.append(asked)
            status, body = provider.answer(asked)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = respond  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Requests are in `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def listed(url: str, things: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "url": url, "has_more": False, "data": things}


def customer(customer_id: str, **members: Any) -> dict[str, Any]:
    return {
        "id": customer_id,
        "object": "customer",
        "created": CREATED,
        "livemode": False,
        "email": f"{customer_id}@example.com",
        "name": f"Owner of {customer_id}",
        "invoice_settings": {"default_payment_method": None},
        "metadata": {},
        **members,
    }


def subscription(subscription_id: str, customer_id: str, status: str = "active", **members: Any) -> dict[str, Any]:
    price = {
        "id": "price_1",
        "object": "price",
        "active": True,
        "billing_scheme": "per_unit",
        "created": CREATED,
        "currency": "eur",
        "livemode": False,
        "metadata": {},
        "product": "prod_1",
        "recurring": {"interval": "month", "interval_count": 1},
        "type": "recurring",
        "unit_amount": 4900,
        "unit_amount_decimal": "4900",
    }
    item = {
        "id": f"si_{subscription_id}",
        "object": "subscription_item",
        "created": CREATED,
        "current_period_start": CREATED,
        "current_period_end": CREATED + 30 * 86_400,
        "metadata": {},
        "price": price,
        "quantity": 1,
        "subscription": subscription_id,
        "tax_rates": [],
    }
    return {
        "id": subscription_id,
        "object": "subscription",
        "created": CREATED,
        "customer": customer_id,
        "livemode": False,
        "status": status,
        "cancel_at_period_end": False,
        "items": listed(f"/v1/subscription_items?subscription={subscription_id}", [item]),
        "metadata": {},
        **members,
    }


def product() -> dict[str, Any]:
    return {
        "id": "prod_1",
        "object": "product",
        "active": True,
        "created": CREATED,
        "livemode": False,
        "metadata": {},
        "name": "The plan",
        "type": "service",
    }


def event(event_id: str, about: dict[str, Any], kind: str = "customer.subscription.updated") -> dict[str, Any]:
    return {
        "id": event_id,
        "object": "event",
        "api_version": "2026-08-26.dahlia",
        "created": CREATED,
        "data": {"object": {**about, "client_secret": CLIENT_SECRET}},
        "livemode": False,
        "pending_webhooks": 0,
        "request": {"id": "req_1", "idempotency_key": "key-1"},
        "type": kind,
    }
