"""A stand-in of the payment provider, a receiver of its webhooks, and the provider's own SDK as the client of both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import stripe

from tests.fakes.payment_provider.running import PRICE_ID, SECRET_KEY, PaymentProvider, payment_provider

SECRETS = ("whsec_first_endpoint", "whsec_second_endpoint")


@dataclass
class Inbox:
    """Requests that a webhook endpoint got: path, signature, body. `statuses` are answers to come, 200 after them."""

    url: str = ""
    got: list[tuple[str, str, bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def events(self, path: str = "/one", secret: str = SECRETS[0]) -> list[stripe.Event]:
        """Those of one endpoint, in the order of arrival, with signatures that the SDK accepts."""
        return [
            stripe.Webhook.construct_event(body, signature, secret)
            for where, signature, body in self.got
            if where == path
        ]

    def kinds(self) -> list[str]:
        return [event.type for event in self.events()]


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    """Listens on a free port."""
    box = Inbox()

    class Receives(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            box.got.append((self.path, self.headers["Stripe-Signature"], body))
            self.send_response(box.statuses.pop(0) if box.statuses else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests read `got` instead."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receives)
    box.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield box
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def _shared() -> Iterator[PaymentProvider]:
    with payment_provider() as running:
        yield running


@pytest.fixture
def provider(_shared: PaymentProvider, inbox: Inbox) -> PaymentProvider:
    """A stand-in as at its start, with one endpoint: the inbox's `/one`."""
    _shared.control("begin_again")
    _shared.control("endpoints", endpoints=[{"url": f"{inbox.url}/one", "secrets": [SECRETS[0]]}])
    return _shared


@pytest.fixture
def client(provider: PaymentProvider) -> stripe.StripeClient:
    """The SDK as it comes, with the stand-in's address; it tries nothing again."""
    return stripe.StripeClient(SECRET_KEY, base_addresses={"api": provider.url}, max_network_retries=0)


@dataclass
class Customer:
    """A customer with a subscription that came about by the hosted page."""

    provider: PaymentProvider
    client: stripe.StripeClient
    id: str

    def checkout(self, **more: Any) -> stripe.checkout.Session:
        """An open session."""
        return self.client.v1.checkout.sessions.create(
            {
                "mode": "subscription",
                "customer": self.id,
                "line_items": [{"price": PRICE_ID, "quantity": 1}],
                "success_url": "http://127.0.0.1:1/done?session={CHECKOUT_SESSION_ID}",
                "cancel_url": "http://127.0.0.1:1/back",
                **more,
            }
        )

    def subscribe(self, **more: Any) -> str:
        """The identifier of a new subscription that was paid."""
        session = self.checkout(**more)
        answer = self.provider.pay(session.url or "")
        assert answer.status_code == 303, answer.text
        return str(self.client.v1.checkout.sessions.retrieve(session.id).subscription)

    def status(self, subscription: str) -> str:
        return str(self.client.v1.subscriptions.retrieve(subscription).status)


@pytest.fixture
def customer(provider: PaymentProvider, client: stripe.StripeClient) -> Customer:
    """A customer of this test alone."""
    made = client.v1.customers.create({"email": "owner@example.com", "metadata": {"organization": "one"}})
    return Customer(provider, client, made.id)
