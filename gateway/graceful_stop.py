"""The steps of a stop of uvicorn that fail no call.   docs/decisions/0079

signal > /ready says draining, answers close their connections > the delay, in which balancers ask /ready > the
listener closes > calls finish > calls that are left are told > uvicorn ends the process.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import threading
from types import FrameType

import structlog
import uvicorn

from gateway import draining
from gateway.http_protocol import BoundedHttpProtocol

log = structlog.get_logger(__name__)
# For the answers of calls that were cut off, and their rows, before uvicorn closes their connections.
TELLING_S = 1
# Of calls after the listener has closed, where the delay uses up the whole time.
LEAST_FINISH_S = 1.0


class GracefulStop:
    """The stop of one server. `delay_s` and `drain_s` are seconds from the signal."""

    def __init__(self, server: uvicorn.Server, *, delay_s: float, drain_s: float) -> None:
        self._server = server
        self._delay_s, self._drain_s = delay_s, drain_s
        self._loop = asyncio.get_running_loop()
        self._began_at_s: float | None = None
        self._delay: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGTERM and SIGINT.

        SIGTERM again changes nothing. SIGINT ends the delay; SIGINT after the delay ends calls at once.
        """
        draining.begin()
        self._loop.call_soon_threadsafe(self._on_signal, number)

    def _on_signal(self, number: int) -> None:
        if self._closing is not None:
            if number == signal.SIGINT:
                self._server.handle_exit(number, None)
            return
        if self._began_at_s is None:
            self._began_at_s = self._loop.time()
            log.info("draining", delay_s=self._delay_s, drain_s=self._drain_s)
            self._close_with_answers()
            delay_s = 0.0 if number == signal.SIGINT else self._delay_s
            self._delay = self._loop.call_later(delay_s, self._close, number)
        elif number == signal.SIGINT:
            self._close(number)

    def _close_with_answers(self) -> None:
        """Connections of requests under way close with their answers; BoundedHttpProtocol does so for later ones."""
        for connection in self._server.server_state.connections:
            if isinstance(connection, BoundedHttpProtocol) and connection.cycle is not None:
                connection.cycle.keep_alive = False

    def _close(self, number: int) -> None:
        if self._delay is not None:
            self._delay.cancel()
        self._closing = asyncio.ensure_future(self._end(number))

    async def _end(self, number: int) -> None:
        await close_listeners(self._server)
        waited_s = self._loop.time() - (self._began_at_s or 0.0)
        finish_s = max(self._drain_s - waited_s, LEAST_FINISH_S)
        self._loop.call_later(finish_s, draining.end_calls)
        self._server.config.timeout_graceful_shutdown = math.ceil(finish_s) + TELLING_S
        self._server.handle_exit(number, None)


async def close_listeners(server: uvicorn.Server) -> None:
    """Accept no further connection, and serve those that the kernel has accepted: it would reset them."""
    listeners = [socket.socket(fileno=os.dup(each.fileno())) for one in server.servers for each in one.sockets]
    for one in server.servers:
        one.close()
    waiting = [connection for listener in listeners for connection in _accepted(listener)]
    loop, config = asyncio.get_running_loop(), server.config

    def protocol() -> asyncio.Protocol:
        made: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg, assignment]
            config=config, server_state=server.server_state, app_state=server.lifespan.state, _loop=loop
        )
        return made

    for connection in waiting:
        await loop.connect_accepted_socket(protocol, connection)


def _accepted(listener: socket.socket) -> list[socket.socket]:
    """The connections that wait to be accepted. The listener is closed right after the last one."""
    found: list[socket.socket] = []
    with listener:
        listener.setblocking(False)
        while True:
            try:
                connection, _ = listener.accept()
            except ConnectionAbortedError:  # its client has left
                continue
            except OSError:  # none is left, or no file is free for one
                return found
            connection.setblocking(False)
            found.append(connection)


def begin_on_signals(*, delay_s: float, drain_s: float) -> None:
    """Put the steps of a stop before uvicorn's. In a thread, and under another server, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        return
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(server, uvicorn.Server):
        stop = GracefulStop(server, delay_s=delay_s, drain_s=drain_s)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.handle)
