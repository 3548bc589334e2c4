"""CPU time of processes and of the whole machine over a span of time; the largest memory a process had."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds by name, and how many cores processes outside the run kept busy."""

    cpu_s: dict[str, float]
    foreign_cores: float


class CpuMeter:
    """Measures the named processes with their children, and this process as what is ours as well."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        # Looked up here, not while measuring: finding children reads all of /proc.
        self._trees = {name: _tree(pid) for name, pid in pids.items()}
        self._own = psutil.Process()
        self._began_s = 0.0
        self._at_start: dict[str, float] = {}
        self._own_at_start = self._busy_at_start = 0.0

    def start(self) -> None:
        """The span begins."""
        self._busy_at_start = _busy_s()
        self._own_at_start = _cpu_s([self._own])
        self._at_start = {name: _cpu_s(tree) for name, tree in self._trees.items()}
        self._began_s = perf_counter()

    def stop(self) -> Usage:
        """The span ends."""
        elapsed_s = perf_counter() - self._began_s
        used = {name: _cpu_s(tree) - self._at_start[name] for name, tree in self._trees.items()}
        own_s = _cpu_s([self._own]) - self._own_at_start
        # Ticks of the two counters do not fall together: a little less than nothing is nothing.
        foreign_s = max(0.0, _busy_s() - self._busy_at_start - own_s - sum(used.values()))
        return Usage(used, foreign_s / elapsed_s if elapsed_s else 0.0)


def peak_rss_bytes(pid: int) -> int:
    """The largest resident size of a process so far; the present one where the system does not remember it."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    return int(psutil.Process(pid).memory_info().rss)


def _tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _cpu_s(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return float(sum(each.user + each.system for each in times))


def _busy_s() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # Guests are counted in `user` already.
    return float(sum(times) - idle - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0))


def core_count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
