"""A Redis of a test's own, with a password as in compose.yaml, that can hang, refuse, forget and lose its writes.

It listens on a free port of this computer and is ended by its process id. It can be a cluster of one node, which
refuses commands whose keys are in several slots, another program that speaks the same, and behind TLS.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import redis

from tests.fakes.certificates import Certificates
from tests.vendors.processes import TETHER, free_port, stop

START_DEADLINE_S = 20.0
PASSWORD = "a password of the test's own"


def is_installed() -> bool:
    """Whether this computer has the program."""
    return shutil.which("redis-server") is not None


@cache
def makes_clusters() -> bool:
    """Whether it is there, and one that can be told its cluster's port and slots: Redis 7."""
    if not is_installed():
        return False
    said = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)", said)
    return version is not None and int(version.group(1)) >= 7


@dataclass
class RedisServer:
    """Answers at `url`. `hang` stops the process between two instructions: connections stay open, nothing answers."""

    port: int
    folder: str
    is_cluster: bool = False
    program: str = "redis-server"
    certificates: Certificates | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _is_hung: bool = False

    @property
    def url(self) -> str:
        """With the password."""
        return self.url_through(self.port)

    def url_through(self, port: int, password: str = PASSWORD) -> str:
        """The same by way of a relay, or with another password."""
        address = f"://:{password.replace(' ', '%20').replace(chr(39), '%27')}@127.0.0.1:{port}/0"
        if self.certificates is None:
            return f"redis{address}"
        return f"rediss{address}?ssl_cert_reqs=required&ssl_ca_certs={self.certificates.authority}"

    def ask(self, *command: str | int) -> object:
        """The reply to one command of the operator's."""
        with contextlib.closing(redis.Redis.from_url(self.url, socket_timeout=5.0)) as client:
            return client.execute_command(*command)

    def hang(self) -> None:
        """From now on it accepts connections (the kernel does) and answers nothing."""
        self._signal(signal.SIGSTOP)
        self._is_hung = True

    def go_on(self) -> None:
        """It answers all that was asked meanwhile, and whatever comes."""
        self._signal(signal.SIGCONT)
        self._is_hung = False

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """It hangs inside the block."""
        self.hang()
        try:
            yield
        finally:
            self.go_on()

    def start(self) -> None:
        """It answers, and knows nothing."""
        ports = ["--port", str(self.port)]
        if (tls := self.certificates) is not None:
            ports = ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
            ports += ["--tls-cert-file", str(tls.certificate), "--tls-key-file", str(tls.key)]
            ports += ["--tls-ca-cert-file", str(tls.authority)]
        command = [self.program, *ports, "--bind", "127.0.0.1", "--requirepass", PASSWORD]
        command += ["--save", "", "--appendonly", "no", "--dir", self.folder, "--masterauth", PASSWORD]
        if self.is_cluster:
            command += ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            with contextlib.suppress(redis.exceptions.ConnectionError):
                if self._serves():
                    return
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.01)

    def _serves(self) -> bool:
        if not self.is_cluster:
            return bool(self.ask("PING"))
        if b"cluster_slots_assigned:0" in bytes(self.ask("CLUSTER", "INFO")):  # type: ignore[call-overload]
            self.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        return b"cluster_state:ok" in bytes(self.ask("CLUSTER", "INFO"))  # type: ignore[call-overload]

    @property
    def is_down(self) -> bool:
        """Whether the process has ended."""
        return self._process is None

    def end(self) -> None:
        """End the process; all it knew is gone."""
        if self._process is not None:
            if self._is_hung:
                self.go_on()
            stop(self._process)
            self._process = None

    def kill(self) -> None:
        """The same between two instructions."""
        assert self._process is not None
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, number)


@contextlib.contextmanager
def redis_server(
    *, is_cluster: bool = False, program: str = "redis-server", certificates: Certificates | None = None
) -> Iterator[RedisServer]:
    """A server that answers; it is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(free_port(), folder, is_cluster, program, certificates)
        server.start()
        try:
            yield server
        finally:
            server.end()
