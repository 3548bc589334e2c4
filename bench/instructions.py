"""The same gateway under other builds or settings: instructions of a call, counted by valgrind.

    python -m bench.instructions base:code=/tmp/last new

Processor time tells variants apart that differ by more than the machine's noise, some 5 % where others use it too. The
number of instructions is nearly the same in each run and on each machine, so that it shows a hundredth. It says nothing
of waits for memory, disks or the kernel. Each call goes alone over one connection that is kept, in short slices of all
variants in turn. The work that a process does by the clock, or once in many calls, only adds to a slice, and under
valgrind a second has few calls: the figure is the lower quartile of the slices. Variants are those of `bench.variants`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import machine, targets
from bench.databases import back_ends
from bench.figures import median
from bench.gateway import GatewayServer
from bench.placement import place
from bench.processes import HOST, BenchFailed, Processes, inherited_environment
from bench.stage import VendorServer
from bench.targets import Target
from bench.variants import ROOT, Variant, start

COUNTER = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet")
START_TIMEOUT_S = 180.0
CALL_TIMEOUT_S = 60.0
DUMP_TIMEOUT_S = 30.0
WARM_UP_CALLS = 40
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
TOTAL = re.compile(r"^totals: (\d+)", re.MULTILINE)  # its last line


@dataclass(frozen=True, slots=True)
class Counted(Variant):
    """A variant whose server runs under the counter; `folder` receives what it counts."""

    folder: str = ""

    def command(self, port: int) -> tuple[str, ...]:
        return (*COUNTER, f"--callgrind-out-file={self.folder}/{self.name}.out", *Variant.command(self, port))


class Window:
    """Instructions of one process between its beginning and its end."""

    def __init__(self, target: Target, folder: Path) -> None:
        assert target.pid is not None
        self._pid, self._folder, self._name = target.pid, folder, target.name
        self._control("--instr=on")

    def begin(self) -> None:
        self._control("--zero")

    def end(self) -> int:
        """Instructions since it began. Raises: BenchFailed."""
        self._control("--dump")
        deadline_s = time.monotonic() + DUMP_TIMEOUT_S
        while time.monotonic() < deadline_s:
            for file in self._folder.glob(f"{self._name}.out.*"):
                if found := TOTAL.findall(file.read_text(encoding="utf-8", errors="replace")):
                    file.unlink()
                    return int(found[-1])
            time.sleep(0.1)
        raise BenchFailed(f"{self._name}: valgrind wrote no sum. {[each.name for each in self._folder.iterdir()]}")

    def _control(self, what: str) -> None:
        # The name of the pipe to valgrind has HOST of its environment, and that is the address the server listens on.
        done = subprocess.run(
            ("callgrind_control", what, str(self._pid)),
            env={**inherited_environment(), "HOST": HOST},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode or "error" in (done.stdout + done.stderr).lower():
            raise BenchFailed(f"callgrind_control {what}: {done.stdout[-200:]} {done.stderr[-200:]}")


def call(connection: socket.socket, request: bytes, mark: bytes) -> None:
    """One call, answered whole. Raises: BenchFailed for another answer than the one it wants."""
    connection.sendall(request)
    answer = b""
    while True:
        part = connection.recv(65_536)
        answer += part
        head, gap, body = answer.partition(b"\r\n\r\n")
        length = CONTENT_LENGTH.search(head)
        if not part or (gap and length and len(body) >= int(length[1])):
            break
    if mark not in answer:
        raise BenchFailed(f"A wrong answer: {answer[:300]!r}")


class Comparison:
    """Windows of all variants in turn."""

    def __init__(self, stage: Sequence[Target], folder: Path, calls: int) -> None:
        self._stage, self._folder, self._calls = stage, folder, calls
        self._windows: dict[str, Window] = {}
        self._connections = {target.name: socket.create_connection((HOST, target.port), 60) for target in stage}

    def measure(self, rounds: int) -> dict[str, list[float]]:
        """Instructions of a call, a figure for each slice."""
        for target in self._stage:
            self._send(target, WARM_UP_CALLS)  # not counted yet, so that they pass no deadline
            self._windows[target.name] = Window(target, self._folder)
            self._send(target, WARM_UP_CALLS)
        found: dict[str, list[float]] = {target.name: [] for target in self._stage}
        for _ in range(rounds):
            for target in self._stage:
                window = self._windows[target.name]
                window.begin()
                self._send(target, self._calls)
                found[target.name].append(window.end() / self._calls)
        return found

    def _send(self, target: Target, calls: int) -> None:
        connection = self._connections[target.name]
        connection.settimeout(CALL_TIMEOUT_S)
        for number in range(calls):
            site = number % len(target.requests)
            call(connection, target.requests[site], target.marks[site])


def lines(found: dict[str, list[float]]) -> list[str]:
    """Pure: lower quartiles, their ratios to the first variant's, and the smallest and the middle figure of each."""
    base = quartile(next(iter(found.values())))
    return [
        f"{name:<16} {quartile(each):>11,.0f} instructions a call (x{quartile(each) / base:.4f});"
        f" smallest {min(each):,.0f}, median {median(each):,.0f}"
        for name, each in found.items()
    ]


def quartile(values: Sequence[float]) -> float:
    """Pure: the lower one."""
    return sorted(values)[len(values) // 4]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("variants", nargs="+", metavar="NAME[:python=PATH][,loop=NAME][,code=FOLDER][,env=NAME=VALUE]")
    parser.add_argument("--rounds", type=int, default=24, help="slices of each variant")
    parser.add_argument("--calls", type=int, default=40, help="of a slice")
    parser.add_argument("--target", choices=["mcp-key", "mcp-write", "mcp-jwt", "cli", "mcp-list"], default="mcp-key")
    options = parser.parse_args(arguments)
    try:
        variants = [Variant.read(each) for each in options.variants]
        if not (shutil.which("valgrind") and shutil.which("callgrind_control")):
            raise BenchFailed("valgrind is missing: install the system's package.")
        found = compare(variants, options.target, options.rounds, options.calls)
    except BenchFailed as fault:
        sys.stderr.write(f"The bench failed: {fault}\n")
        return 1
    print("\n".join(lines(found)))
    return 0


def compare(variants: Sequence[Variant], name: str, rounds: int, calls: int) -> dict[str, list[float]]:
    """Instructions of a call of the target, by variant. Raises: BenchFailed."""
    placement = place(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set())
    with (
        tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder,
        back_ends(os.environ) as found,
        Processes(ROOT, Path(folder)) as processes,
    ):
        vendor = VendorServer(processes, placement)
        kind = targets.NAMES[name]
        gateway = GatewayServer(
            processes, placement, vendor, found, Path(folder).resolve(), lists=kind == targets.MCP_LIST
        )
        counted = [Counted(each.name, each.python, each.loop, each.code, each.env, folder) for each in variants]
        stage = start(processes, placement, gateway, counted, kind, timeout_s=START_TIMEOUT_S)
        print("\n".join([*machine.facts(), found.description]), flush=True)
        return Comparison(stage, Path(folder), calls).measure(rounds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
