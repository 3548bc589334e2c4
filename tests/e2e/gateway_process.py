"""The gateway as processes: web servers and an operator on the data of one deployment, as many as a test wants."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gateway.supervisor.child_environment import service_environment
from gateway.supervisor.options import read_options
from gateway.supervisor.secret_store import load_secrets
from gateway.supervisor.services import web_command
from tests.e2e.deployment_data import Database, Template, store_variables
from tests.vendors.processes import PASSED_ON, PLAIN_HTTP, ROOT, TETHER, free_port, stop

READY_DEADLINE_S = 120.0
OPERATION_DEADLINE_S = 120.0
LOG_TAIL_CHARACTERS = 4_000


@dataclass
class Program:
    """A child that dies with us, in a group of its own, with a log of its own."""

    process: subprocess.Popen[Any]
    log_path: Path

    def log(self) -> str:
        """All that it has written so far."""
        return self.log_path.read_text(errors="replace")

    def kill(self) -> None:
        """Ended between two instructions, as by a power cut or the kernel's memory killer."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class Web(Program):
    """A web server that answers at `origin`."""

    origin: str = ""

    @property
    def mcp_url(self) -> str:
        """The unified endpoint."""
        return f"{self.origin}/v1/mcp"

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    @contextlib.contextmanager
    def client(self, **options: Any) -> Iterator[httpx.Client]:
        """An HTTP client of this server."""
        with httpx.Client(base_url=self.origin, **PLAIN_HTTP, timeout=120.0, **options) as client:
            yield client

    def wait_until_ready(self) -> None:
        """GET /ready answers 200."""
        deadline = time.monotonic() + READY_DEADLINE_S
        with self.client() as client:
            while True:
                assert self.process.poll() is None, self.log()[-LOG_TAIL_CHARACTERS:]
                assert time.monotonic() < deadline, self.log()[-LOG_TAIL_CHARACTERS:]
                with contextlib.suppress(httpx.TransportError):
                    if client.get("/ready").status_code == 200:
                        return
                time.sleep(0.05)


class Operator:
    """An operator with a shell on the deployment. Runs functions of tests/e2e/operations.py beside the web servers."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, name: str, /, **arguments: Any) -> Any:
        """The operation's result, which is JSON."""
        asks, answers = self.program.process.stdin, self.program.process.stdout
        assert asks is not None
        assert answers is not None
        asks.write(json.dumps({"name": name, "arguments": arguments}).encode() + b"\n")
        asks.flush()
        line = answers.readline()
        assert line, self.program.log()[-LOG_TAIL_CHARACTERS:]
        answer = json.loads(line)
        assert "error" not in answer, f"{answer.get('error')}\n{self.program.log()[-LOG_TAIL_CHARACTERS:]}"
        return answer["result"]

    def manage(self, *arguments: str) -> str:
        """The output of a management command that succeeds, without the start of a process of its own."""
        done = self.run("manage", arguments=list(arguments))
        assert done["code"] == 0, done
        return str(done["output"])


@dataclass
class Deployment:
    """A folder, a database and a store of its own, and the environment that every process of it gets.

    `origin` is its public address (BASE_URL), where the first web server listens. `code` is the folder of the product
    that runs, ours unless another release is tried.
    """

    folder: Path
    database: Database
    port: int
    environment: dict[str, str] = field(repr=False)
    secrets: dict[str, str] = field(repr=False)
    code: Path = ROOT
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def origin(self) -> str:
        """Where people and agents find it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_paths(self) -> list[Path]:
        """The log of every process so far."""
        return sorted((self.folder / "logs").iterdir())

    @contextlib.contextmanager
    def web(
        self, *, port: int | None = None, waits: bool = True, processes: int = 1, **environment: str
    ) -> Iterator[Web]:
        """A web server, ready if it `waits`; on the public port unless another is named. More may run beside it.

        Its `processes` share the port; without Redis there is one.
        """
        number = port or self.port
        given = {name: self.environment[name] for name in ("REDIS_URL",) if processes > 1 and name in self.environment}
        options = read_options(
            {"PORT": str(number), "VAR": str(self.folder), "DEMO": "0", "WEB_PROCESSES": str(processes), **given}, ROOT
        )
        with self._started("web", web_command(options), environment) as (process, log_path):
            web = Web(process, log_path, f"http://127.0.0.1:{number}")
            if waits:
                web.wait_until_ready()
            yield web

    @contextlib.contextmanager
    def webs(self, count: int, **environment: str) -> Iterator[list[Web]]:
        """More web servers, started at the same time."""
        with contextlib.ExitStack() as stack:
            made = [stack.enter_context(self.web(port=free_port(), waits=False, **environment)) for _ in range(count)]
            for web in made:
                web.wait_until_ready()
            yield made

    @contextlib.contextmanager
    def operator(self, **environment: str) -> Iterator[Operator]:
        """An operator's process with the service's code and settings."""
        command = (sys.executable, "-m", "tests.e2e.operations")
        with self._started("operator", command, environment, talks=True) as (process, log_path):
            yield Operator(Program(process, log_path))

    def manage(self, *arguments: str, **environment: str) -> str:
        """The output of a management command."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.code,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=OPERATION_DEADLINE_S,
        )
        (self.folder / "logs" / f"{next(self._numbers):02}-manage.log").write_text(done.stderr)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def _started(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, talks: bool = False
    ) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """A child of ours; the whole group is gone at the end of the block, however it ends."""
        log_path = self.folder / "logs" / f"{next(self._numbers):02}-{name}.log"
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
                cwd=self.code,
                env={**self.environment, **environment},
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process, log_path
        finally:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            stop(process)


@contextlib.contextmanager
def deployment(
    template: Template, folder: Path, *, port: int | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[Deployment]:
    """A deployment with an empty database in `folder`; nothing runs yet. `variables` are settings of its own."""
    (folder / "logs").mkdir(parents=True)
    number = port or free_port()
    with template.copied(folder) as database, store_variables() as store:
        given = {"PORT": str(number), "VAR": str(folder), "DEMO": "0", "DATABASE_URL": database.url, **store}
        machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        secrets = load_secrets(folder, variables or {}, has_database=False)
        environ = {**machine, **given, **(variables or {})}
        environment = {**service_environment(read_options(environ, ROOT), environ, secrets), **store}
        yield Deployment(folder, database, number, environment, secrets)


def deployment_of(variables: Mapping[str, str]) -> Deployment:
    """The deployment of a `make run` with these variables, once it is ready: for more processes beside its own."""
    folder = Path(variables["VAR"])
    machine = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environ = {**machine, **variables}
    secrets = load_secrets(folder, environ, has_database=True)
    environment = service_environment(read_options(environ, ROOT), environ, secrets)
    database = Database(variables.get("DATABASE_URL") or f"sqlite:///{folder / 'gateway.sqlite3'}")
    return Deployment(folder, database, int(variables["PORT"]), environment, secrets)


def wait_for(condition: Callable[[], bool], deadline_s: float = 10.0) -> None:
    """`condition` has become true."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.02)
