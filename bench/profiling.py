"""Where the gateway's time goes: samples of py-spy, where it is installed, grouped by layer.

Only threads that hold the interpreter's lock are sampled: neither waiting counts, nor system calls that let go of it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import BenchFailed, Processes
from bench.stage import LoadGenerator
from bench.targets import Target

SAMPLES_PER_S = 250
PROFILE_CONNECTIONS = 16
START_S = 3.0
TOP_FUNCTIONS = 25
WAITING = "waiting"
OTHER = "other"
# A sample belongs to the layer of its innermost frame that names one. Time in C counts for its Python caller.
LAYERS = (
    (WAITING, r"threading\.py|_next_batch|queue\.py|selectors\.py"),
    ("vendor client: aiohttp", r"/aiohttp/|/yarl/|/multidict/|/aiosignal/|/frozenlist/|/propcache/"),
    ("vendor client: ours", r"proxy/vendors/|proxy/protocol/(replies|sse)|gateway/lib/outbound"),
    ("coordination store", r"gateway/coordination/|/redis/|/hiredis/"),
    ("audit", r"audit/|proxy/calls/call_audit|/psycopg|gateway/lib/ids"),
    ("credentials", r"credentials/|gateway/lib/crypto|gateway/catalog/|proxy/calls/open_destination"),
    ("identity, caller cache", r"proxy/(authenticate|caller)|oauth_ext/|proxy/calls/admit"),
    ("decision, finding the tool", r"proxy/calls/|orgs/access_rules|proxy/protocol/tool"),
    ("request and answer", r"proxy/|gateway/(hot_path|uvicorn_fast_path|asgi|lib|middleware)"),
    ("Django", r"/django/|/asgiref/"),
    ("ASGI server", r"/uvicorn/"),
    ("logging", r"/structlog/|/logging/"),
    ("event loop, tasks", r"/asyncio/|uvloop"),
)
_LAYERS = tuple((name, re.compile(pattern)) for name, pattern in LAYERS)


@dataclass(slots=True)
class Profile:
    """Samples by layer and by innermost function; `waiting` ones are left out of both."""

    samples: int = 0
    layers: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Shares in percent of what was not waiting."""
        total = max(self.samples, 1)
        found = [f"{100 * count / total:5.1f} %  {name}" for name, count in self.layers.most_common()]
        found.append("innermost functions:")
        found += [f"{100 * count / total:5.1f} %  {name}" for name, count in self.functions.most_common(TOP_FUNCTIONS)]
        return found


def group(lines: Iterable[str]) -> Profile:
    """Pure: a raw profile (frames joined by semicolons, a blank, the count) by layer."""
    profile = Profile()
    for line in lines:
        stack, _, text = line.rstrip("\n").rpartition(" ")
        if not stack or not text.isdigit():
            continue
        frames, count = stack.split(";"), int(text)
        layer = layer_of(frames)
        if layer == WAITING:
            continue
        profile.samples += count
        profile.layers[layer] += count
        profile.functions[frames[-1]] += count
    return profile


def layer_of(frames: list[str]) -> str:
    """Pure: the layer of the innermost frame that has one."""
    for frame in reversed(frames):
        for name, pattern in _LAYERS:
            if pattern.search(frame):
                return name
    return OTHER


def require_profiler() -> str:
    """The program's path. Raises: BenchFailed."""
    program = shutil.which("py-spy")
    if program is None:
        raise BenchFailed("--profile needs py-spy on PATH: pip install py-spy in an environment of your own.")
    return program


def profile_target(
    processes: Processes, load: LoadGenerator, target: Target, *, seconds: float, folder: Path
) -> tuple[Profile, int]:
    """The profile of a target's process under load, and how many calls it answered meanwhile. Raises: BenchFailed."""
    if target.pid is None:
        raise BenchFailed(f"{target.name} has no process of its own to profile")
    file = folder / f"profile-{target.name.replace(' ', '-').replace(',', '')}.raw"
    command = (
        *(require_profiler(), "record", "--pid", str(target.pid), "--format", "raw", "--full-filenames", "--gil"),
        *("--rate", str(SAMPLES_PER_S), "--duration", str(max(1, round(seconds))), "--output", str(file)),
    )
    recorder = processes.start("py-spy", command)
    outcome = load.run(target, connections=PROFILE_CONNECTIONS, warm_up_s=0, measure_s=seconds + START_S, meters={})
    try:
        recorder.wait(timeout_s=seconds + 30)
        return group(file.read_text(encoding="utf-8").splitlines()), outcome.answered
    except (subprocess.TimeoutExpired, OSError) as fault:
        raise BenchFailed(f"py-spy left no profile: {type(fault).__name__}. {recorder.log_tail()}") from None
