"""Starts the whole service as `make run` does, on free ports and in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis

from gateway.supervisor.secret_store import load_secrets
from tests.e2e.deployment_data import Template

ROOT = Path(__file__).resolve().parents[2]
SUPERVISOR = (sys.executable, "-m", "gateway.supervisor")
READY_DEADLINE_S = 120.0
STOP_DEADLINE_S = 45.0
# Nothing of the suite's own settings may reach the service.
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")


@contextlib.contextmanager
def real_back_ends() -> Iterator[dict[str, str]]:
    """The variables for the back ends of this run: none, or a database of its own and the given Redis."""
    variables = {}
    with contextlib.ExitStack() as stack:
        if database_url := os.environ.get("DATABASE_URL"):
            variables["DATABASE_URL"] = stack.enter_context(fresh_database(database_url))
        yield variables | stack.enter_context(given_redis())


@contextlib.contextmanager
def used_back_ends(template: Template, var: Path) -> Iterator[dict[str, str]]:
    """The same for a start in a folder `var` that was used before: the database has its tables, so it starts sooner."""
    var.mkdir(mode=0o700)
    load_secrets(var, {}, has_database=False)
    with template.copied(var) as database, given_redis() as store:
        yield store if database.is_sqlite else {"DATABASE_URL": database.url, **store}


@contextlib.contextmanager
def given_redis() -> Iterator[dict[str, str]]:
    """The variable for the Redis of this run, if there is one; the service's keys in it are gone at the end."""
    redis_url = os.environ.get("REDIS_URL")
    try:
        yield {"REDIS_URL": redis_url} if redis_url else {}
    finally:
        if redis_url:
            remove_keys(redis_url)


@contextlib.contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """The address of an empty database on the server, dropped at the end."""
    name = f"gateway_e2e_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    yield f"{server_url.rpartition('/')[0]}/{name}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def remove_keys(redis_url: str) -> None:
    """The service's keys are gone from Redis."""
    client = redis.Redis.from_url(redis_url)
    for key in client.scan_iter("gateway:*"):
        client.delete(key)
    client.close()


def free_ports() -> dict[str, str]:
    """Three ports that nothing uses."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(3)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        numbers = [str(probe.getsockname()[1]) for probe in probes]
    return dict(zip(("PORT", "IDP_PORT", "VENDOR_PORT"), numbers, strict=True))


@dataclass
class Started:
    """A start of the service. `variables` are its whole environment but for the machine's own."""

    process: subprocess.Popen[str]
    output_path: Path
    variables: dict[str, str]

    @property
    def var(self) -> Path:
        return Path(self.variables["VAR"])

    @property
    def ready_path(self) -> Path:
        return self.var / "ready.json"

    def output(self) -> str:
        """All that it has written on the terminal."""
        return self.output_path.read_text()

    def ready(self) -> dict[str, Any]:
        """The content of ready.json."""
        content: dict[str, Any] = json.loads(self.ready_path.read_text())
        return content

    def pasted_lines(self) -> list[str]:
        """The lines that are there to be pasted."""
        return [line for line in self.output().splitlines() if line.startswith("curl ")]

    def processes(self) -> list[psutil.Process]:
        """Everything that it has started, however deep."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def process_running(self, word: str) -> psutil.Process:
        """The one that the supervisor started itself with `word` on its command line."""
        found = [child for child in psutil.Process(self.process.pid).children() if word in child.cmdline()]
        assert len(found) == 1, (word, found)
        return found[0]

    def wait_ready(self) -> None:
        """It has said that it is ready."""
        deadline = time.monotonic() + READY_DEADLINE_S
        while "Ctrl-C stops everything" not in self.output():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)

    def wait_for(self, text: str, deadline_s: float = 30.0) -> None:
        """It has written `text`."""
        deadline = time.monotonic() + deadline_s
        while text not in self.output():
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)

    def wait_end(self) -> int:
        """Its exit code, once it has ended by itself."""
        return self.process.wait(STOP_DEADLINE_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(number)
        return self.wait_end()


@contextlib.contextmanager
def started(
    folder: Path, variables: Mapping[str, str] | None = None, command: tuple[str, ...] = SUPERVISOR
) -> Iterator[Started]:
    """A start in `folder`/var, ended at the end of the block if it has not ended by then."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {**free_ports(), "VAR": str(folder / "var"), **(variables or {})}
    machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    output_path = folder / f"output-{uuid.uuid4().hex[:8]}.txt"
    with output_path.open("w") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, cwd=ROOT, env=machine | given, text=True, **streams)
    start = Started(process, output_path, given)
    try:
        yield start
    finally:
        if process.poll() is None:
            start.stop()


def refusal(folder: Path, variables: Mapping[str, str]) -> tuple[int, str]:
    """The exit code and the output of a start that is expected to end by itself."""
    with started(folder, variables) as start:
        return start.wait_end(), start.output()


def living(processes: list[psutil.Process], deadline_s: float) -> list[psutil.Process]:
    """Those of the processes that still run after the deadline."""
    _, alive = psutil.wait_procs(processes, timeout=deadline_s)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
