"""A balancer that obeys /ready: new connections go round the servers whose last answer was 200."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence

from tests.fakes.silent_relay import Relay, running

ASK_EVERY_S = 0.1
ANSWER_DEADLINE_S = 2.0
QUESTION = b"GET /ready HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n"


class ReadyProxy(Relay):
    """Kept connections of clients stay with their server until it closes them."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(("127.0.0.1", ports[0]))
        self._ports = ports
        self._turns = itertools.count()
        self.ready: frozenset[int] = frozenset()
        self.has_asked = threading.Event()

    def next_target(self) -> tuple[str, int]:
        ready = sorted(self.ready) or list(self._ports)
        return "127.0.0.1", ready[next(self._turns) % len(ready)]

    async def serve(self, started: threading.Event, ended: asyncio.Event) -> None:
        asking = asyncio.ensure_future(self._ask())
        try:
            await super().serve(started, ended)
        finally:
            asking.cancel()

    async def _ask(self) -> None:
        while True:
            answers = await asyncio.gather(*(is_ready(port) for port in self._ports))
            self.ready = frozenset(port for port, ready in zip(self._ports, answers, strict=True) if ready)
            self.has_asked.set()
            await asyncio.sleep(ASK_EVERY_S)


async def is_ready(port: int) -> bool:
    """Whether the server's /ready answers 200."""
    try:
        async with asyncio.timeout(ANSWER_DEADLINE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(QUESTION)
                return (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


@contextlib.contextmanager
def ready_proxy(ports: Sequence[int]) -> Iterator[ReadyProxy]:
    """The proxy before servers of this computer, in a thread of its own, once it has asked all of them."""
    proxy = ReadyProxy(ports)
    with running(proxy):
        assert proxy.has_asked.wait(2 * ANSWER_DEADLINE_S)
        yield proxy
