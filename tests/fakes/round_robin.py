"""A reverse proxy as many deployments have one: each connection goes to the next server, whoever sends on it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.fakes.silent_relay import Relay, running


class RoundRobin(Relay):
    """Its clients close their connections after each request, so requests go round as well."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(("127.0.0.1", ports[0]))
        self._ports = ports
        self.connections: Counter[int] = Counter()

    def next_target(self) -> tuple[str, int]:
        port = self._ports[self.connections.total() % len(self._ports)]
        self.connections[port] += 1
        return "127.0.0.1", port


@contextlib.contextmanager
def round_robin(ports: Sequence[int]) -> Iterator[RoundRobin]:
    """The proxy before servers of this computer, in a thread of its own."""
    proxy = RoundRobin(ports)
    with running(proxy):
        yield proxy
