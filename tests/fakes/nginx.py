"""A real nginx with the repository's file before web processes of this computer, where it is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx

from tests.vendors.processes import PLAIN_HTTP, ROOT, TETHER, free_port, stop

CONFIGURATION = (ROOT / "deploy" / "nginx.conf").read_text()
SERVERS = ("server web:8000 max_fails=0;", "server web:8000 fail_timeout=2s;")
START_DEADLINE_S = 20.0


def is_installed() -> bool:
    return shutil.which("nginx") is not None


def nginx_command(folder: Path, port: int, ports: Sequence[int]) -> list[str]:
    """The command of an nginx at `port` before the servers at `ports`."""
    changes = {"listen 8080;": f"listen 127.0.0.1:{port};"}
    for server in SERVERS:
        changes[server] = "\n".join(server.replace("web:8000", f"127.0.0.1:{each}") for each in ports)
    path = folder / "nginx.conf"
    path.write_text(changed(CONFIGURATION, changes).replace("/tmp/", f"{folder}/"))
    folder.chmod(0o777)  # a worker of root's is another user
    # Without a master process the one process dies with us, and every setting is the same.
    command = ["nginx", "-p", str(folder), "-c", str(path), "-g", "daemon off; master_process off;"]
    checked = subprocess.run([*command[:-2], "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    return command


def changed(text: str, changes: Mapping[str, str]) -> str:
    """The file of the repository with addresses and folders of the test."""
    for before, after in changes.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    return text


@contextlib.contextmanager
def nginx(folder: Path, ports: Sequence[int]) -> Iterator[int]:
    """The port of a running nginx."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with (folder / "error.log").open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *nginx_command(folder, port, ports)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_DEADLINE_S
        with httpx.Client(**PLAIN_HTTP) as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    client.get(f"http://127.0.0.1:{port}/health")
                    break
                assert started.poll() is None, (folder / "error.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.01)
        yield port
    finally:
        stop(started)


def faults(folder: Path) -> list[str]:
    """Its reports, without refused connections, after which it asks another server."""
    expected = ("Connection refused", "temporarily disabled")  # the latter of pages
    lines = (folder / "error.log").read_text().splitlines()
    return [line for line in lines if not any(words in line for words in expected)]
