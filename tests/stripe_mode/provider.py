"""A payment provider that answers with given objects, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.payment_provider import shapes
from tests.fakes.small_stripe import Asked, small_stripe

CREATED = 1_790_000_000
# It must not be stored: the holder confirms a payment with it.
CLIENT_SECRET = "pi_1_secret_ThatConfirmsAPayment"
_MISSING = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such object"}}


@dataclass
class Provider:
    """`answers`: what a path gets, an object or (status, body)."""

    origin: str
    asked: list[Asked]
    answers: dict[str, Any] = field(default_factory=dict)

    def add(self, thing: dict[str, Any]) -> dict[str, Any]:
        """The object can be read, by itself and in the list of its kind."""
        folder = f"/v1/{thing['object']}s"
        self.answers[f"{folder}/{thing['id']}"] = thing
        kept = [each for each in self.answers.get(folder, {"data": []})["data"] if each["id"] != thing["id"]]
        self.answers[folder] = shapes.listed([*kept, thing], folder)
        return thing

    def respond(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        found = self.answers.get(asked.path)
        if isinstance(found, tuple):
            status, body = found
            return status, {}, body
        if found is None:
            return 404, {}, json.dumps(_MISSING).encode()
        if customer := asked.fields.get("customer"):
            found = {**found, "data": [each for each in found["data"] if each["customer"] == customer]}
        return 200, {}, json.dumps(found).encode()

    def paths(self) -> list[str]:
        return [each.path for each in self.asked]


@contextmanager
def listening() -> Iterator[Provider]:
    """On a port of this host until the block ends."""
    with small_stripe() as api:
        provider = Provider(api.url, api.asked)
        api.respond = provider.respond
        yield provider


def customer(customer_id: str, **members: Any) -> dict[str, Any]:
    given = {"email": f"{customer_id}@example.com", "name": f"Owner of {customer_id}", "metadata": {}, **members}
    return shapes.customer(CREATED, False, id_=customer_id, **given)


def subscription(subscription_id: str, customer_id: str, status: str = "active", **members: Any) -> dict[str, Any]:
    price = shapes.price(
        *(CREATED, False),
        interval="month",
        count=1,
        id_="price_1",
        active=True,
        currency="eur",
        metadata={},
        nickname=None,
        product="prod_1",
        unit_amount=4900,
    )
    return shapes.subscription(
        *(CREATED, False),
        price=price,
        quantity=1,
        period_end=CREATED + 30 * 86_400,
        id_=subscription_id,
        customer=customer_id,
        status=status,
        trial_end=None,
        metadata={},
        **members,
    )


def product() -> dict[str, Any]:
    return shapes.product(CREATED, False, "prod_1", active=True, metadata={}, name="The plan")


def event(event_id: str, about: dict[str, Any], kind: str = "customer.subscription.updated") -> dict[str, Any]:
    about, request = {**about, "client_secret": CLIENT_SECRET}, {"id": "req_1", "idempotency_key": "key-1"}
    return shapes.event(CREATED, False, kind, about, None, id_=event_id, pending_webhooks=0, request=request)
