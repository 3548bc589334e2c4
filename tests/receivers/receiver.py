"""A platform on a port of this computer: it records what arrives, checks it, and plays faults when it is told to."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tests.receivers.azure import Azure
from tests.receivers.better_stack import BetterStack
from tests.receivers.elasticsearch import Elasticsearch
from tests.receivers.faults import Fault
from tests.receivers.hec import LogScale, Splunk
from tests.receivers.loki import Loki
from tests.receivers.otlp import Otlp
from tests.receivers.paths import values_at
from tests.receivers.server import Server
from tests.receivers.webhook import Webhook
from tests.receivers.wire import Event, Refused, Reply, Request, Wire

KINDS: dict[str, type[Wire]] = {
    "elasticsearch": Elasticsearch,
    "loki": Loki,
    "splunk": Splunk,
    "better_stack": BetterStack,
    "logscale": LogScale,
    "otlp": Otlp,
    "azure_monitor": Azure,
    "webhook": Webhook,
}
REDIRECT_PATH = "/where-a-redirect-led"


@dataclass
class _Planned:
    fault: Fault
    times: float
    on: str


class Receiver:
    """`events` are those kept, in the order of arrival, again for each time they came.

    `settings` are the platform's: its token, its tenant, its clock (see its class).
    """

    def __init__(self, kind: str, *, tls: ssl.SSLContext | None = None, **settings: Any) -> None:
        self.wire = KINDS[kind](**settings)
        self.events: list[Event] = []
        self.requests: list[Request] = []
        self.poison: Callable[[Event], bool] = lambda event: False  # events that the platform always refuses
        self._plan: list[_Planned] = []
        self._lock = threading.Lock()
        self._server = Server(self._handle, self._failed, tls)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        """Scheme, host and port, without a path."""
        return self._server.url

    @property
    def violations(self) -> list[str]:
        return self.wire.breaches

    def ids(self, *path: str) -> list[Any]:
        """The values of the kept events at `path`; text is read as JSON where the path goes on, lists are flattened."""
        return [value for event in list(self.events) for value in values_at(event, path)]

    def fail_next(self, fault: Fault, times: float = 1, *, on: str = "") -> None:
        """The next requests, or those whose path contains `on`, meet this fault; math.inf: until heal()."""
        if fault.kind == "refuses" and not self.wire.has_partial_failures:
            raise ValueError("this platform takes a batch or refuses it")
        with self._lock:
            self._plan.append(_Planned(fault, times, on))

    def heal(self) -> None:
        with self._lock:
            self._plan.clear()

    def _handle(self, request: Request) -> tuple[Reply, Fault | None]:
        with self._lock:
            self.requests.append(request)
            fault = self._next_fault(request.path)
            reply = self._judged(request, fault)
        if fault is None or fault.kind == "refuses" or fault.kind == "slow":
            return reply, fault
        return self._instead(fault), fault

    def _judged(self, request: Request, fault: Fault | None) -> Reply:
        """A request is checked whatever fault it meets."""
        if request.path == REDIRECT_PATH:
            self.wire.breach("a redirect was followed")
            return Reply(404)
        try:
            events = self.wire.read(request)
        except Refused as refused:
            return refused.reply
        if fault is not None and fault.kind != "refuses" and not fault.keeps:
            return Reply(500)  # never sent: the fault has its own answer
        reply = self.wire.answer(events, self._refusals(events, fault))
        self.events += [events[place] for place in sorted(reply.stored)]
        return reply

    def _refusals(self, events: list[Event], fault: Fault | None) -> dict[int, int]:
        refused = {place: 400 for place, event in enumerate(events) if self.poison(event)}
        if fault is not None and fault.kind == "refuses":
            refused |= {place: fault.status for place in fault.places if place < len(events)}
        return refused

    def _next_fault(self, path: str) -> Fault | None:
        for planned in self._plan:
            if planned.on in path:
                planned.times -= 1
                if planned.times <= 0:
                    self._plan.remove(planned)
                return planned.fault
        return None

    def _instead(self, fault: Fault) -> Reply:
        if fault.kind == "redirects":
            return Reply(fault.status, headers={"Location": f"{self.url}{REDIRECT_PATH}"})
        if fault.body is not None or fault.kind != "answers":
            return Reply(fault.status, fault.body or b"", fault.headers)
        reply = self.wire.in_words(fault.status)
        return Reply(fault.status, reply.body, {**reply.headers, **fault.headers})

    def _failed(self, sentence: str) -> None:
        self.wire.breach(sentence)
