"""Requests one after the other, each with the CPU time that the gateway's process took for it."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Sequence

from bench.processes import HOST, BenchFailed

ANSWER_TIMEOUT_S = 30.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CPU_CLOCK_OF_PROCESS = 2  # CPUCLOCK_SCHED: all threads, in nanoseconds


def cpu_clock(pid: int) -> Callable[[], int]:
    """Nanoseconds of CPU that a process has used with all its threads. Linux only.

    The clock's id is the one that clock_getcpuclockid(3) gives.
    """
    clock = (~pid << 3) | _CPU_CLOCK_OF_PROCESS
    return lambda: time.clock_gettime_ns(clock)


class Answer:
    """One answer as it came."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body


class OneByOne:
    """One kept connection to a port on this computer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> Answer:
        """Raises: BenchFailed for an answer without a length, OSError."""
        self._socket.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if length is None:
            raise BenchFailed(f"an answer without a length: {head[:200]!r}")
        while len(body) < int(length[1]):
            body += self._more()
        return Answer(int(head.split(b" ", 2)[1]), body)

    def _more(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise BenchFailed("the gateway closed a connection")
        return data


def ask_all(port: int, requests: Sequence[tuple[bytes, bytes]], clock: Callable[[], int] = lambda: 0) -> list[float]:
    """Milliseconds of CPU of each request, until the next one is sent. Raises: BenchFailed for a wrong answer."""
    took_ms = []
    with OneByOne(port) as connection:
        before_ns = clock()
        for request, mark in requests:
            answer = connection.ask(request)
            if answer.status != 200 or mark not in answer.body:
                raise BenchFailed(f"a wrong answer: {answer.status} {answer.body[:300]!r}")
            after_ns = clock()
            took_ms.append((after_ns - before_ns) / 1e6)
            before_ns = after_ns
    return took_ms
