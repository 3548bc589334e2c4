"""Starts a server as a child process on a free port, waits until it answers, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[2]
TETHER = Path(__file__).with_name("tether.py")
START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 5.0
PORT_ATTEMPTS = 3
# Above the ports that Chromium refuses, and below those that Linux gives to outgoing connections.
LOWEST_PORT, LOWEST_OUTGOING_PORT = 11_000, 32_768
LOG_TAIL_CHARS = 4000
# A vendor server may show its environment to its callers: it gets what a program needs to run and nothing else.
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")

# For HTTP clients of servers on this machine. Reading the certificates of the world takes longer than many a test.
PLAIN_HTTP = {"trust_env": False, "verify": False}

# The command for a port, and whether the server at an origin answers as it should.
CommandFor = Callable[[int], Sequence[str]]
Probe = Callable[[httpx.Client, str], bool]


class ServerStartError(Exception):
    """The server did not come up; the message ends with what it wrote."""


@dataclass(frozen=True)
class RunningServer:
    """A server that answers at `origin`, such as http://127.0.0.1:40123, until its context ends."""

    name: str
    origin: str
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def mcp_url(self) -> str:
        """Where an MCP server takes its calls."""
        return f"{self.origin}/mcp"

    def log(self) -> str:
        """All that the server has written so far."""
        return self.log_path.read_text(errors="replace")


@contextlib.contextmanager
def running_server(
    name: str, command_for: CommandFor, probe: Probe, environment: Mapping[str, str] | None = None
) -> Iterator[RunningServer]:
    """A server that has answered `probe`; its whole process group is gone afterwards, however the block ends.

    Raises: ServerStartError.
    """
    with tempfile.TemporaryDirectory(prefix=f"{name}-log-") as folder:
        server = _start(name, command_for, probe, environment or {}, Path(folder) / "server.log")
        try:
            yield server
        finally:
            stop(server.process)


def _start(
    name: str, command_for: CommandFor, probe: Probe, environment: Mapping[str, str], log_path: Path
) -> RunningServer:
    for attempt in range(PORT_ATTEMPTS):
        port = free_port()
        process = _spawn(command_for(port), environment, log_path)
        server = RunningServer(name, f"http://127.0.0.1:{port}", process, log_path)
        try:
            _wait_until_ready(server, port, probe)
        except _ExitedEarly:
            # Another program may have taken the port between the look and the bind; another port settles it.
            stop(process)
            if attempt + 1 == PORT_ATTEMPTS:
                raise ServerStartError(f"{name} exits at once:\n{server.log()[-LOG_TAIL_CHARS:]}") from None
        except BaseException:
            stop(process)
            raise
        else:
            return server
    raise AssertionError("unreachable")


class _ExitedEarly(Exception):
    pass


def _spawn(command: Sequence[str], environment: Mapping[str, str], log_path: Path) -> subprocess.Popen[bytes]:
    passed_on = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**passed_on, **environment},
            cwd=ROOT,
            start_new_session=True,  # a group of its own, so that its children can be ended with it
        )


def _wait_until_ready(server: RunningServer, port: int, probe: Probe) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    with httpx.Client(**PLAIN_HTTP, timeout=5.0) as client:
        while True:
            if server.process.poll() is not None:
                raise _ExitedEarly
            # Another program at this port is not the server that was asked for.
            if _listens(server.process.pid, port):
                with contextlib.suppress(httpx.TransportError):
                    if probe(client, server.origin):
                        return
            if time.monotonic() > deadline:
                tail = server.log()[-LOG_TAIL_CHARS:]
                raise ServerStartError(f"{server.name} does not answer within {START_DEADLINE_S:.0f} s:\n{tail}")
            time.sleep(0.05)


def _listens(pid: int, port: int) -> bool:
    try:
        sockets = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.NoSuchProcess:
        return False
    return any(entry.status == psutil.CONN_LISTEN and entry.laddr.port == port for entry in sockets)


def stop(process: subprocess.Popen[bytes]) -> None:
    """The process and everything in its group have ended: asked first, killed after STOP_DEADLINE_S."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_DEADLINE_S)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait(STOP_DEADLINE_S)


def _signal_group(pid: int, number: signal.Signals) -> None:
    # The group carries the leader's id for as long as anyone is in it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing used a moment ago, and that no outgoing connection is given meanwhile."""
    while True:
        number = LOWEST_PORT + secrets.randbelow(LOWEST_OUTGOING_PORT - LOWEST_PORT)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", number))
            return number
