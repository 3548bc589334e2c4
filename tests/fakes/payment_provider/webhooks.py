"""Sends events to webhook endpoints: signed, retried, and as late, often or seldom as a test wants."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from tests.fakes.payment_provider.shapes import API_VERSION
from tests.fakes.payment_provider.store import Json
from tests.fakes.payment_provider.versions import as_of

DELIVERY_TIMEOUT_S = 20.0
MOST_AT_ONCE = 64


@dataclass
class Endpoint:
    """More than one secret: the endpoint's secret was rolled, and both sign for a while."""

    url: str
    secrets: list[str] = field(repr=False)
    kinds: list[str] = field(default_factory=lambda: ["*"])
    api_version: str = API_VERSION

    def wants(self, kind: str) -> bool:
        return "*" in self.kinds or kind in self.kinds


@dataclass
class Rules:
    """How events are delivered. `order` is that of a release: created, reversed or shuffled."""

    hold: bool = False
    drop_every: int = 0  # 2: each second event is lost for good, as after days without an answer
    copies: int = 1
    order: str = "created"
    delay_s: float = 0.0
    parallel: int = 1
    retry_delays_s: list[float] = field(default_factory=lambda: [0.05, 0.2, 1.0])
    seed: int = 0


@dataclass
class Delivery:
    """An attempt. `status` is None and `error` a text where there was no answer."""

    event: str
    kind: str
    url: str
    attempt: int
    status: int | None = None
    error: str = ""


@dataclass
class Sending:
    event: Json
    endpoint: Endpoint
    attempt: int = 1
    secrets: list[str] | None = None  # instead of the endpoint's
    signed_ago_s: int = 0


def signature(body: bytes, secrets: Sequence[str], moment: int) -> str:
    """The value of Stripe-Signature, with one `v1` for each secret and a `v0` that means nothing."""
    parts = [f"t={moment}"]
    for secret in secrets:
        signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256)
        parts.append(f"v1={signed.hexdigest()}")
    return ",".join([*parts, f"v0={'0' * 64}"])


class Sender:
    """All state is of one event loop."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self.rules = Rules()
        self.deliveries: list[Delivery] = []
        self.lost: list[str] = []
        self.held: list[Sending] = []
        self._queue: deque[Sending] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = 0  # tasks that still take from the queue
        self._waiting = 0  # retries whose moment has not come
        self._seen = 0
        self._is_closed = False
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        self._is_closed = True
        self._queue.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    def take(self, event: Json) -> int:
        """A new event: lost, held or on its way."""
        wanted = [each for each in self.endpoints if each.wants(event["type"])]
        self._seen += 1
        if self.rules.drop_every and self._seen % self.rules.drop_every == 0:
            self.lost.append(event["id"])
            return len(wanted)
        sendings = [Sending(event, endpoint) for endpoint in wanted for _ in range(self.rules.copies)]
        if self.rules.hold:
            self.held += sendings
        else:
            self._send(sendings)
        return len(wanted)

    def set_rules(self, changes: dict[str, Any]) -> None:
        """Only the named rules change. The count for `drop_every` begins again."""
        self.rules = Rules(**{**asdict(self.rules), **changes})
        self._seen = 0

    def release(self, order: str | None = None) -> None:
        """All that was held is on its way."""
        held, self.held = self.held, []
        order = order or self.rules.order
        if order == "reversed":
            held.reverse()
        if order == "shuffled":
            random.Random(self.rules.seed).shuffle(held)
        self._send(held)

    def resend(self, events: list[Json], secrets: list[str] | None, signed_ago_s: int) -> None:
        """Events are sent once more, as by the button of the dashboard, held or not."""
        self._send(
            [
                Sending(event, endpoint, secrets=secrets, signed_ago_s=signed_ago_s)
                for event in events
                for endpoint in self.endpoints
                if endpoint.wants(event["type"])
            ]
        )

    @property
    def busy(self) -> bool:
        """Whether anything is on its way or will be tried again."""
        return bool(self._queue or self._running or self._waiting)

    def _send(self, sendings: list[Sending]) -> None:
        self._queue.extend(sendings)
        for _ in range(min(self.rules.parallel, MOST_AT_ONCE, len(self._queue)) - self._running):
            self._running += 1
            task = asyncio.get_running_loop().create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        try:
            while self._queue:
                await self._take_one(self._queue.popleft())
        finally:
            self._running -= 1

    async def _take_one(self, sending: Sending) -> None:
        await asyncio.sleep(self.rules.delay_s)
        delivery = await self._deliver(sending)
        self.deliveries.append(delivery)
        if delivery.status is None or not 200 <= delivery.status < 300:
            self._try_again_later(sending)
        else:
            sending.event["pending_webhooks"] = max(0, sending.event["pending_webhooks"] - 1)

    def _try_again_later(self, sending: Sending) -> None:
        delays = self.rules.retry_delays_s
        if sending.attempt > len(delays):
            return
        self._waiting += 1
        again = Sending(sending.event, sending.endpoint, sending.attempt + 1, sending.secrets, sending.signed_ago_s)
        asyncio.get_running_loop().call_later(delays[sending.attempt - 1], self._retry, again)

    def _retry(self, sending: Sending) -> None:
        self._waiting -= 1
        if not self._is_closed:
            self._send([sending])

    async def _deliver(self, sending: Sending) -> Delivery:
        event, endpoint = sending.event, sending.endpoint
        body = json.dumps(_for_endpoint(event, endpoint), indent=2).encode()
        # The receiver compares this moment with its own clock, which no test moves.
        moment = int(time.time()) - sending.signed_ago_s
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, sending.secrets or endpoint.secrets, moment),
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        }
        delivery = Delivery(event["id"], event["type"], endpoint.url, sending.attempt)
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, timeout=DELIVERY_TIMEOUT_S, follow_redirects=False)
        try:
            answer = await self._client.post(endpoint.url, content=body, headers=headers)
        except httpx.HTTPError as fault:
            delivery.error = type(fault).__name__
        else:
            delivery.status = answer.status_code
        return delivery


def _for_endpoint(event: Json, endpoint: Endpoint) -> Json:
    shaped: Json = as_of(endpoint.api_version, event)
    return {**shaped, "api_version": endpoint.api_version}
