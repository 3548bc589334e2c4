"""A PostgreSQL cluster of a test's own, which can be killed between two instructions and started again.

It listens on a free port of this computer, and its processes are ended by their ids.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.vendors.processes import TETHER, free_port

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 30.0
USER = "postgres"  # also the system's, for a run as root, which PostgreSQL refuses
LOCAL = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")


def binaries() -> Path | None:
    """The folder of the newest server on this computer, None without one."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in found), key=lambda folder: float(folder.parent.name), default=None)


@dataclass
class PostgreSQLServer:
    port: int
    folder: Path
    programs: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"postgres://{USER}@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        if os.getuid() == 0:
            os.chown(self.folder, *_ids())
        command = [str(self.programs / "initdb"), "--pgdata", str(self.folder / "data"), "--username", USER]
        command += ["--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
        subprocess.run(as_server_user(command), cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def copy_of(self, primary: PostgreSQLServer) -> None:
        """A standby that follows the primary as soon as it starts."""
        if os.getuid() == 0:
            os.chown(self.folder, *_ids())
        command = [str(self.programs / "pg_basebackup"), "--pgdata", str(self.folder / "data"), "--write-recovery-conf"]
        command += ["--dbname", f"{primary.url}?application_name=standby", "--checkpoint", "fast", "--no-sync"]
        subprocess.run(as_server_user(command), cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=120)

    def ask(self, *statements: str, database: str = USER) -> list[tuple[Any, ...]]:
        """The rows of the last statement; each is committed by itself."""
        url = f"postgres://{USER}@127.0.0.1:{self.port}/{database}"
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            cursors = [connection.execute(statement.encode()) for statement in statements]
            return cursors[-1].fetchall() if cursors[-1].description else []

    def start(self) -> None:
        """It has recovered and answers."""
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), *LOCAL]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                as_server_user(command), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._answers():
            assert self._process.poll() is None, f"PostgreSQL has ended: {self.folder / 'log'}"
            assert time.monotonic() < deadline, f"PostgreSQL does not answer: {self.folder / 'log'}"
            time.sleep(0.02)

    @property
    def is_down(self) -> bool:
        return self._process is None

    def kill(self) -> None:
        """The postmaster and all its children at once: no one ends a transaction, or tells a client."""
        assert self._process is not None
        postmaster = psutil.Process(self._process.pid)
        postmaster.suspend()  # it has no more children from here on
        children = postmaster.children(recursive=True)
        for process in (postmaster, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(STOP_DEADLINE_S)
        _, left = psutil.wait_procs(children, timeout=STOP_DEADLINE_S)
        assert not left, "processes of PostgreSQL outlive SIGKILL"
        self._process = None

    def hang(self) -> None:
        """From now on it accepts connections (the kernel does) and answers nothing."""
        for process in self._all():
            process.suspend()

    def go_on(self) -> None:
        for process in self._all():
            process.resume()

    def _all(self) -> list[psutil.Process]:
        assert self._process is not None
        postmaster = psutil.Process(self._process.pid)
        return [postmaster, *postmaster.children(recursive=True)]

    def end(self) -> None:
        """In order, so that no shared memory is left behind."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
            return True
        return False


@contextlib.contextmanager
def postgresql_server(programs: Path) -> Iterator[PostgreSQLServer]:
    """A new cluster that answers; it is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        server = PostgreSQLServer(free_port(), Path(folder), programs)
        server.make()
        try:
            server.start()
            yield server
        finally:
            server.end()


def _ids() -> tuple[int, int]:
    entry = pwd.getpwnam(USER)
    return entry.pw_uid, entry.pw_gid


def as_server_user(command: list[str]) -> list[str]:
    """Not as root, and dead when this process is."""
    if os.getuid() != 0:
        return [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command]
    user, group = _ids()
    become = ["setpriv", "--reuid", str(user), "--regid", str(group), "--clear-groups", "--pdeathsig", "KILL"]
    return [*become, *command]
