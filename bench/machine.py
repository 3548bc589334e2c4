"""The machine of the measurement: absolute figures mean nothing without it."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.accounting import core_count

PACKAGES = ("uvicorn", "uvloop", "httptools", "aiohttp", "django")


def facts() -> list[str]:
    """Lines for the head of the report."""
    memory_gib = psutil.virtual_memory().total / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [
        f"{core_count()} cores ({processor_name()}), {memory_gib:.0f} GiB, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, {versions}",
        f"Load average when this was written: {os.getloadavg()[0]:.1f}",
    ]


def identity() -> str:
    """Absolute figures are bound to it; two computers with the same words are taken for one."""
    memory_gib = psutil.virtual_memory().total / 2**30
    return f"{core_count()} cores ({processor_name()}), {memory_gib:.0f} GiB, Python {platform.python_version()}"


def processor_name() -> str:
    """The processor's model, as far as the system tells."""
    file = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", file.read_text(), re.MULTILINE) if file.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def file_system(folder: Path) -> str:
    """The kind of file system that holds a folder: how dear a durable commit is depends on it."""
    places = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    return max(places, key=lambda part: len(part.mountpoint)).fstype if places else "unknown"
