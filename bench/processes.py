"""The processes of a run: pinned, each in a group and a log of its own, ended with the run whatever happens to it."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from types import TracebackType
from typing import IO

from gateway.supervisor.services import SERVER_FLAGS

HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1
STOP_TIMEOUT_S = 15.0
KILL_TIMEOUT_S = 5.0
LOG_TAIL_LINES = 15
# All that a process needs of the caller's environment: a deployment's variables in this shell must not reach it.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class BenchFailed(Exception):
    """The run cannot go on; the message says why."""


class Process:
    """One started program."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name, self.log = name, log
        self._popen = popen

    @property
    def pid(self) -> int:
        """Its id, and that of its group."""
        return self._popen.pid

    @property
    def stdin(self) -> IO[bytes]:
        """Its standard input."""
        assert self._popen.stdin is not None
        return self._popen.stdin

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._popen.poll()

    def read_line(self, *, timeout_s: float) -> bytes:
        """The next line of standard output.

        Raises: BenchFailed when the program ends or says nothing in time.
        """
        stream = self._popen.stdout
        assert stream is not None
        deadline_s = time.monotonic() + timeout_s
        line = b""
        while not line.endswith(b"\n"):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([stream], [], [], left_s)[0]:
                raise BenchFailed(f"{self.name} said nothing for {timeout_s:.0f} s. {self.log_tail()}")
            part = os.read(stream.fileno(), 65_536)
            if not part:
                raise BenchFailed(f"{self.name} ended. {self.log_tail()}")
            line += part
        return line

    def wait(self, *, timeout_s: float) -> None:
        """It has ended well.

        Raises: BenchFailed.
        """
        try:
            code = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise BenchFailed(f"{self.name} did not end in {timeout_s:.0f} s. {self.log_tail()}") from None
        if code != 0:
            raise BenchFailed(f"{self.name} ended with exit code {code}. {self.log_tail()}")

    def stop(self) -> None:
        """It and whatever it started are gone: asked first, killed when that takes too long."""
        if self._popen.poll() is None:
            self._popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(STOP_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(KILL_TIMEOUT_S)
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def log_tail(self) -> str:
        """The last lines of its log, for an error message."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return "Its log ends:\n" + "\n".join(f"    {line[:400]}" for line in lines) if lines else "Its log is empty."


class Processes:
    """Starts programs and, when the block ends, has ended them all, the last first."""

    def __init__(self, folder: Path, log_folder: Path) -> None:
        self._folder, self._log_folder = folder, log_folder
        self._started: list[Process] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        for process in reversed(self._started):
            process.stop()

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cores: Set[int] = frozenset(),
        talks: bool = False,
        folder: Path | None = None,
    ) -> Process:
        """A running program on `cores`, in `folder` or this one; with `talks` its standard streams are pipes to us."""
        log = self._log_folder / f"{name}.log"
        with log.open("ab") as file:
            popen = subprocess.Popen(
                command,
                cwd=folder or self._folder,
                env={**inherited_environment(), **(environment or {})},
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else file,
                stderr=file,
                start_new_session=True,
                preexec_fn=_before_program(cores),
            )
        process = Process(name, popen, log)
        self._started.append(process)
        return process


def inherited_environment() -> dict[str, str]:
    """The variables that every process of the run inherits."""
    return {name: os.environ[name] for name in INHERITED if os.environ.get(name)} | {"PYTHONUNBUFFERED": "1"}


def python_module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with this interpreter."""
    return (sys.executable, "-m", name, *arguments)


def web_server(application: str, port: int) -> tuple[str, ...]:
    """The command that serves an ASGI application just as the gateway is served."""
    return python_module("uvicorn", application, "--host", HOST, "--port", str(port), *SERVER_FLAGS)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_serving(process: Process, port: int, path: str, *, timeout_s: float, expected: int = 200) -> None:
    """GET answers with the expected status.

    Raises: BenchFailed when the process ends or does not answer so in time.
    """
    deadline_s = time.monotonic() + timeout_s
    while (status := get_status(port, path)) != expected:
        if process.exit_code() is not None:
            raise BenchFailed(f"{process.name} ended while starting. {process.log_tail()}")
        if time.monotonic() > deadline_s:
            raise BenchFailed(f"{process.name} did not serve in {timeout_s:.0f} s ({status}). {process.log_tail()}")
        time.sleep(0.05)


def get_status(port: int, path: str) -> int | None:
    """The status of one GET, None without an answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _before_program(cores: Set[int]) -> Callable[[], None]:
    """A function to run between fork and exec; it does as little as it can."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform.startswith("linux") else None
    parent = os.getpid()

    def prepare() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # the parent died before the kernel was told
                os._exit(1)
        if cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)

    return prepare
