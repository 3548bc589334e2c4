"""Child processes: each leads its own process group, has its own log, and ends with the supervisor."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.supervisor import guard
from gateway.supervisor.signals import Signals

PR_SET_PDEATHSIG = 1
# Wait for the kernel to reap a killed child.
KILL_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Service:
    """A program to keep running; ready once `ready_url` answers 200 (Host: `ready_host`) or `ready_file` exists."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    stop_timeout_s: float
    may_restart: bool
    ready_url: str | None = None
    ready_host: str | None = None
    ready_file: Path | None = None


@dataclass(slots=True)
class Child:
    """A started program. `group` is its process group, which also holds its own children."""

    service: Service
    process: subprocess.Popen[bytes]
    log_path: Path
    started_at_s: float

    @property
    def group(self) -> int:
        return self.process.pid

    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()


class Guarded:
    """Starts children and reports them to a guard process, which ends them if the supervisor is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard: subprocess.Popen[str] | None = None

    def __enter__(self) -> Guarded:
        self._guard = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.close()
            self._guard.wait()

    def start(self, service: Service, log_path: Path, *, reads_output: bool = False) -> Child:
        """Start a service. Output goes to `log_path`; with `reads_output` standard output is a pipe."""
        with log_path.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - commands are written in services.py
                service.command,
                cwd=self._folder,
                env=dict(service.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if reads_output else log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent(),
            )
        self._notify_guard(f"+{process.pid}")
        return Child(service, process, log_path, time.monotonic())

    def forget(self, child: Child) -> None:
        """Kill the remaining processes of an ended child's group, then remove the group from the guard."""
        guard.send(child.group, signal.SIGKILL)
        # The kernel may reuse the group's number.
        self._notify_guard(f"-{child.group}")

    def stop(self, child: Child, signals: Signals) -> None:
        """SIGTERM to the child, then SIGKILL to its group after its timeout or at a second stop signal."""
        if child.exit_code() is None:
            child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + child.service.stop_timeout_s
        while child.exit_code() is None and time.monotonic() < deadline and signals.stop_count < 2:
            signals.wait(deadline - time.monotonic())
        guard.send(child.group, signal.SIGKILL)
        child.process.wait(timeout=KILL_WAIT_S)
        self.forget(child)

    def _notify_guard(self, line: str) -> None:
        if self._guard is None or self._guard.stdin is None:
            raise RuntimeError("children are started inside the with block")
        # The guard may have been killed. The service goes on: PR_SET_PDEATHSIG still ends the children on Linux.
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.write(line + "\n")
            self._guard.stdin.flush()


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux, a preexec function that makes the kernel send SIGTERM to the child when its parent dies."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def end_with_parent() -> None:
        # Runs between fork and exec, where only minimal work is safe.
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before prctl
            os._exit(1)

    return end_with_parent
