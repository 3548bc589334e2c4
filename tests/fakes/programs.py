"""Programs of this computer that stand beside the gateway for one test and are gone with it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.vendors.processes import TETHER, stop

START_DEADLINE_S = 30.0


@dataclass
class Program:
    command: Sequence[str]
    port: int
    log: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """It listens."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while not _listens(self.port):
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def end(self) -> None:
        if self._process is not None:
            stop(self._process)
            self._process = None


def tethered(command: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command]


@contextlib.contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[Program]:
    """A program that listens at the port."""
    program = Program(command, port, log)
    try:
        program.start()
        yield program
    finally:
        program.end()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
