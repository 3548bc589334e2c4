"""Signals as events to wait for: no handler does work, so none interrupts a start half way."""

from __future__ import annotations

import select
import signal
import socket
from types import FrameType
from typing import IO, Any

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """While entered, counts stop signals, and a child's end wakes `wait`."""

    def __init__(self) -> None:
        self.stop_count = 0
        self._previous: dict[int, Any] = {}
        # The self-pipe trick: the interpreter writes each signal's number to the socket, so select wakes up.
        self._receiver, self._sender = socket.socketpair()
        for end in (self._receiver, self._sender):
            end.setblocking(False)

    def __enter__(self) -> Signals:
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        for number in (*STOPPING, signal.SIGCHLD):
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        self._receiver.close()
        self._sender.close()

    @property
    def is_stopping(self) -> bool:
        return self.stop_count > 0

    def wait(self, timeout_s: float, *files: IO[bytes]) -> None:
        """Return at the next signal, when one of `files` is readable, or after `timeout_s`."""
        sources: list[socket.socket | IO[bytes]] = [self._receiver, *files]
        readable, _, _ = select.select(sources, [], [], max(0.0, timeout_s))
        if self._receiver in readable:
            self._receiver.recv(4096)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number in STOPPING:
            self.stop_count += 1
