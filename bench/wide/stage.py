"""The data and the processes of a wide run."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.databases import BackEnds
from bench.gateway import gateway_environment
from bench.placement import Placement
from bench.processes import HOST, BenchFailed, Process, Processes, free_port, python_module, wait_until_serving
from bench.processes import web_server as plain_server
from bench.stage import START_TIMEOUT_S, VendorServer
from bench.wide.observed_server import VARIABLE
from bench.wide.seeding import catalog_of
from bench.wide.sizes import Sizes
from bench.wide.statements import of_calls

SEEDING_TIMEOUT_S = 120.0  # between two lines
HOOK_TIMEOUT_S = 60.0
# Longer than the two seconds for which uses of clients are gathered.
QUIET_S, QUIET_TIMEOUT_S = 2.5, 60.0
LOOK_AGAIN_S = 0.02
MODULE_OF_SERVER = "bench.wide.observed_server"
SHIPPED_SIZES = {
    "CACHED_CALLERS": 50_000,
    "CACHED_ORGANIZATIONS": 10_000,
    "CACHED_DATA_KEYS": 4_096,
    "VENDOR_SESSIONS": 50_000,
    "VENDOR_SESSIONS_AWAKE": 20_000,
    "TOOL_INDEXES": 50_000,
}


def raised_sizes(sizes: Sizes) -> dict[str, str]:
    """Pure: the sizes of a process that these data exceed, as an operator would raise them. Others stay as shipped."""
    needed = {
        "CACHED_CALLERS": sizes.all_callers,
        "CACHED_ORGANIZATIONS": sizes.organizations,
        "CACHED_DATA_KEYS": sizes.organizations,
        "VENDOR_SESSIONS": sizes.lists,
        "VENDOR_SESSIONS_AWAKE": sizes.lists,
        "TOOL_INDEXES": sizes.lists,
    }
    return {name: str(count) for name, count in needed.items() if count > SHIPPED_SIZES[name]}


class WideData:
    """A seeded database, and the environment of each process that serves it."""

    def __init__(
        self,
        processes: Processes,
        placement: Placement,
        vendor: VendorServer,
        back_ends: BackEnds,
        folder: Path,
        sizes: Sizes,
        *,
        say: Callable[[str], None],
    ) -> None:
        self._processes, self._placement = processes, placement
        port = free_port()
        self.environment = gateway_environment(port, folder, back_ends.environment) | raised_sizes(sizes)
        catalog_file, bearers = folder / "wide-vendors.toml", folder / "bearers"
        catalog_file.write_text(catalog_of(vendor.url, sizes.vendors), encoding="utf-8")
        seeding = processes.start(
            "seeding",
            python_module(
                "bench.wide.seeding",
                *(f"--organizations={sizes.organizations}", f"--callers={sizes.callers}", f"--vendors={sizes.vendors}"),
                *(f"--catalog={catalog_file}", f"--vendor-key={vendor.key}", f"--bearers={bearers}"),
                f"--resource=http://{HOST}:{port}/v1/mcp",
            ),
            environment=self.environment,
            talks=True,
        )
        back_ends.own_ids = tuple(_organizations(seeding, say))
        self.bearers: list[str] = msgspec.msgpack.decode(bearers.read_bytes(), type=list[str])

    def audit_rows(self) -> dict[str, int]:
        """Rows of the call log by route and ending."""
        process = self._processes.start(
            "preparation-count",
            python_module("bench.preparation", "count"),
            environment=self.environment,
            cores=self._placement.others,
            talks=True,
        )
        rows: dict[str, int] = json.loads(process.read_line(timeout_s=SEEDING_TIMEOUT_S))["rows"]
        return rows


def _organizations(seeding: Process, say: Callable[[str], None]) -> list[str]:
    while True:
        for line in seeding.read_line(timeout_s=SEEDING_TIMEOUT_S).splitlines():
            said: dict[str, Any] = json.loads(line)
            if "progress" in said:
                say(said["progress"])
            else:
                found: list[str] = said["organizations"]
                return found


class GatewayProcess:
    """One process that serves the data, with the hook of `observed_server`."""

    def __init__(
        self, processes: Processes, name: str, environment: Mapping[str, str], folder: Path, cores: Set[int]
    ) -> None:
        self.port = free_port()
        self._file = folder / f"{name}.collector"
        self._number = 0
        _, _, _, *arguments = plain_server("gateway.asgi:application", self.port)
        self._process = processes.start(
            name,
            python_module(MODULE_OF_SERVER, "gateway.asgi:application", *arguments[1:]),
            environment={**environment, VARIABLE: str(self._file)},
            cores=cores,
        )
        self.pid = self._process.pid

    def wait_until_serving(self) -> None:
        """Raises: BenchFailed."""
        wait_until_serving(self._process, self.port, "/health", timeout_s=START_TIMEOUT_S)

    def stop(self) -> None:
        self._process.stop()

    def rss_bytes(self) -> int:
        """The resident memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise BenchFailed("the process has no resident memory")

    def let_run_on(self, cores: Set[int]) -> None:
        """All threads of the process may use these cores from now on."""
        if cores and hasattr(os, "sched_setaffinity"):
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)

    def collect(self) -> dict[str, int]:
        """Objects that a full garbage collection finds now: see `observed_server.answer`. Raises: BenchFailed."""
        self._number += 1
        os.kill(self.pid, signal.SIGUSR2)
        deadline_s = time.monotonic() + HOOK_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._file.exists():
                said: dict[str, int] = json.loads(self._file.read_text(encoding="utf-8"))
                if said["number"] == self._number:
                    return said
            time.sleep(LOOK_AGAIN_S)
        raise BenchFailed("the gateway said nothing about its garbage collector")


class StatementProxy:
    """The proxy that counts statements; `url` leads through it."""

    def __init__(self, processes: Processes, placement: Placement, database_url: str) -> None:
        server = urlsplit(database_url)
        command = python_module("bench.wide.statement_proxy", server.hostname or HOST, str(server.port or 5432))
        self._process = processes.start("statement-proxy", command, cores=placement.others, talks=True)
        port = json.loads(self._process.read_line(timeout_s=START_TIMEOUT_S))["port"]
        user, at, _ = server.netloc.rpartition("@")
        self.url = server._replace(netloc=f"{user}{at}{HOST}:{port}").geturl()

    def take_when_quiet(self) -> dict[str, int]:
        """Statements by name since the last time, once none came for a moment. Raises: BenchFailed."""
        taken: Counter[str] = Counter()
        deadline_s = time.monotonic() + QUIET_TIMEOUT_S
        while time.monotonic() < deadline_s:
            time.sleep(QUIET_S)
            more = self.take()
            taken.update(more)
            if not of_calls(more):
                return dict(taken)
        raise BenchFailed(f"a gateway without calls goes on to run statements: {more}")

    def take(self) -> dict[str, int]:
        """Statements by name since the last time."""
        self._process.stdin.write(b"take\n")
        self._process.stdin.flush()
        counts: dict[str, int] = json.loads(self._process.read_line(timeout_s=START_TIMEOUT_S))
        return counts

    def stop(self) -> None:
        self._process.stop()


class RoundRobin:
    """The proxy before several processes."""

    def __init__(self, processes: Processes, placement: Placement, ports: Sequence[int], name: str) -> None:
        command = python_module("bench.round_robin", *map(str, ports))
        self._process = processes.start(name, command, cores=placement.others, talks=True)
        self.pid = self._process.pid
        self.port: int = json.loads(self._process.read_line(timeout_s=START_TIMEOUT_S))["port"]

    def stop(self) -> None:
        self._process.stop()
