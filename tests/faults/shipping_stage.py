"""Log shipping as processes that can be killed: the worker, the beat, two receivers, and writers of the log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gateway.container.entrypoint import role_command
from gateway.supervisor.child_environment import service_environment
from gateway.supervisor.options import read_options
from gateway.supervisor.secret_store import load_secrets
from gateway.supervisor.services import shipping_command
from tests.faults.shipping_writer import ORGS
from tests.vendors.processes import PASSED_ON, ROOT, TETHER, free_port, stop

WRITERS = 2
_WAITING = (
    "SELECT count(*) FROM audit_logdestination AS d JOIN {table} AS r ON r.org_id = d.org_id"
    " WHERE r.position IS NOT NULL AND (r.position, r.id) > (d.{name}_position, d.{name}_row)"
)
TABLES = {"requests": "audit_requestauditentry", "admin": "audit_adminauditentry"}
# As if the time of the claim were over. Both databases read these literals.
_LONG_AGO = "2000-01-01 00:00:00+00:00"
_END_CLAIM = (
    f"UPDATE audit_logdestination SET claimed_until = '{_LONG_AGO}'"
    f" WHERE claimed_until > '{_LONG_AGO}' AND org_id = '{{org_id}}'"
)


class Part(Protocol):
    def start(self) -> None: ...

    def kill(self) -> None: ...


class Process:
    """A program of ours that dies with us. It writes to a log of its own."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._command, self._environment, self.log = command, environment, log
        self._process: subprocess.Popen[bytes] | None = None
        self.ended_by_itself = 0

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *self._command],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def pause(self) -> None:
        """Between two instructions, with all its children."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def revive(self) -> None:
        """As the supervisor does."""
        if self._process is not None and self._process.poll() is not None:
            self.ended_by_itself += 1
            self.start()

    def end(self) -> None:
        if self._process is not None:
            stop(self._process)
            self._process = None


@dataclass
class Stage:
    """`connect` opens a connection to the database that commits each statement."""

    folder: Path
    environment: dict[str, str] = field(repr=False)
    connect: Callable[[], Any]
    worker: Process
    beat: Process
    receivers: list[Process]
    writers: list[Process]

    @property
    def processes(self) -> list[Process]:
        return [self.worker, self.beat, *self.receivers, *self.writers]

    def revive(self) -> None:
        for process in self.processes:
            process.revive()

    def begun(self, place: int) -> int:
        """How many requests a receiver has begun to read."""
        file = self.receiver_folder(place) / "begun"
        return file.stat().st_size if file.exists() else 0

    def receiver_folder(self, place: int) -> Path:
        return self.folder / f"receiver-{place}"

    def noted_files(self) -> list[Path]:
        return sorted(self.folder.glob("noted-*"))

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection:
            return list(connection.execute(sql).fetchall())

    def waiting(self) -> int:
        """Records that no destination has dealt with."""
        return sum(int(self.select(_WAITING.format(table=table, name=name))[0][0]) for name, table in TABLES.items())

    def end_claim(self, place: int) -> int:
        """Returns 1 when there was one whose time was not over."""
        with closing(self.connect()) as connection:
            return int(connection.execute(_END_CLAIM.format(org_id=ORGS[place].hex)).rowcount)

    def end_writers(self) -> None:
        for writer in self.writers:
            writer.end()
        self.writers = []


def service_variables(folder: Path, database_url: str, redis_url: str) -> dict[str, str]:
    """The environment of the service's programs."""
    machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    given = {"PORT": str(free_port()), "VAR": str(folder), "DEMO": "0", "ALLOW_PRIVATE_ENDPOINTS": "1"}
    folder.mkdir(parents=True, exist_ok=True)
    environ = {**machine, **given, "DATABASE_URL": database_url, "REDIS_URL": redis_url}
    secrets = load_secrets(folder, {}, has_database=False)
    return service_environment(read_options(environ, ROOT), environ, secrets)


def migrate(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "migrate", "--no-input", "--skip-checks", "--verbosity=0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=300)


@contextlib.contextmanager
def stage(folder: Path, environment: dict[str, str], connect: Callable[[], Any], *, rate: float) -> Iterator[Stage]:
    """Everything runs, on a database with the tables of `audit`; all of it has ended afterwards."""
    ports = [free_port() for _ in ORGS]
    writer = [sys.executable, "-m", "tests.faults.shipping_writer"]
    receiver = [sys.executable, "-I", "-S", str(Path(__file__).with_name("shipping_receiver.py"))]

    def process(name: str, *command: str) -> Process:
        return Process(command, environment, folder / f"{name}.log")

    made = Stage(
        folder,
        environment,
        connect,
        worker=process("worker", *shipping_command(environment)),
        beat=process("beat", *role_command("beat", ["--schedule", str(folder / "schedule")], environment)),
        receivers=[
            process(f"receiver-{place}", *receiver, str(port), str(folder / f"receiver-{place}"))
            for place, port in enumerate(ports)
        ],
        writers=[
            process(f"writer-{seed}", *writer, "write", str(folder / f"noted-{seed}"), str(rate / WRITERS), str(seed))
            for seed in range(WRITERS)
        ],
    )
    urls = [f"http://127.0.0.1:{port}/events" for port in ports]
    try:
        for each in (made.worker, made.beat, *made.receivers):
            each.start()
        subprocess.run([*writer, "prepare", *urls], cwd=ROOT, env=environment, check=True, timeout=120)
        for each in made.writers:
            each.start()
        yield made
    finally:
        for each in made.processes:
            each.end()


def until(condition: Callable[[], bool], deadline_s: float, *, pause_s: float = 0.005) -> bool:
    """Whether it has come true in time."""
    give_up_at = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(pause_s)
    return True
