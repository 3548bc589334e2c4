"""The stand-in's process, for tests: started on a free port, spoken to by its control routes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from tests.vendors.processes import PLAIN_HTTP, RunningServer, running_server

SECRET_KEY = "sk_test_standin0123456789"
PRICE_ID = "price_flat"
DAY_S = 86_400
SETTLE_DEADLINE_S = 120.0


@dataclass
class PaymentProvider:
    """A running stand-in."""

    server: RunningServer
    http: httpx.Client

    @property
    def url(self) -> str:
        """The base of its API, in place of the provider's own."""
        return self.server.origin

    def control(self, name: str, /, **given: Any) -> dict[str, Any]:
        """The answer of a control route (control.py)."""
        answer = self.http.post(f"/_control/{name}", json=given)
        assert answer.status_code == 200, (name, answer.text)
        found: dict[str, Any] = answer.json()
        return found

    def advance(self, *, days: float = 0.0, seconds: float = 0.0) -> int:
        """So much time has passed; the provider's clock in Unix seconds."""
        return int(self.control("clock", advance_s=int(days * DAY_S + seconds))["now"])

    def settle(self) -> dict[str, Any]:
        """Nothing is on its way any more: `deliveries`, `held` and `lost`."""
        return self.control("settle")

    def pay(self, url: str, card: str = "4242424242424242", **fields: str) -> httpx.Response:
        """The answer of a hosted page to its form."""
        return self.http.post(url, data={"card": card, **fields})

    def act(self, url: str, action: str, **fields: str) -> httpx.Response:
        """A button of a hosted page."""
        return self.http.post(url, data={"action": action, **fields})


@contextlib.contextmanager
def payment_provider() -> Iterator[PaymentProvider]:
    """A stand-in that sells PRICE_ID to clients with SECRET_KEY. Raises: ServerStartError."""

    def command_for(port: int) -> list[str]:
        return [sys.executable, "-m", "tests.fakes.payment_provider", "--port", str(port), "--price", PRICE_ID]

    def is_up(client: httpx.Client, origin: str) -> bool:
        return client.get(f"{origin}/healthz").status_code == 200

    with (
        running_server("payment-provider", command_for, is_up, {"PAYMENT_PROVIDER_KEY": SECRET_KEY}) as server,
        httpx.Client(base_url=server.origin, **PLAIN_HTTP, timeout=SETTLE_DEADLINE_S) as http,
    ):
        yield PaymentProvider(server, http)
