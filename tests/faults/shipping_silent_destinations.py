"""Destinations that never answer, beside one that does: `python -m tests.faults.shipping_silent_destinations`.

[--minutes 3] [--silent 50] [--organizations 10]. Worker, worker of log shipping and beat run as compose.yaml starts
them. Calls of all organizations are recorded all the time, and each silent destination holds each of its deliveries
until the deadline. The good one is of another organization and delivered before the others came; half way a new one of
one more organization begins. The exit code is 1 when a bound is broken. PostgreSQL and Redis are servers of the run's
own; the computer must have both programs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from gateway.container.entrypoint import role_command
from gateway.lib.queues import SHIPPING_THREADS
from tests.fakes.postgresql_server import binaries, postgresql_server
from tests.fakes.redis_server import is_installed, redis_server
from tests.faults.answering_servers import Noted, answering_servers
from tests.faults.shipping_stage import Process, service_variables, until
from tests.faults.silent_server import SilentServer, silent_server
from tests.vendors.processes import ROOT

LAG_S = 10.0
FIRST_DELIVERY_S = 30.0  # of a new destination, which waits for a place among those that do not answer
START_DEADLINE_S = 120.0
PROBE_EVERY_S = 10
LATEST_PROBE = 1.5  # intervals
SLOTS = int(SHIPPING_THREADS)
CROWD = [sys.executable, "-m", "tests.faults.shipping_crowd"]
GOOD, NEW, SILENT = "/good-0", "/new-0", "silent"
NEW_ORG = uuid.UUID(int=1_000)


@dataclass
class Figures:
    """Times in seconds. `lags`: from the commit of a call of the good organization to its arrival."""

    silent: int
    slots_of_silent: int
    lags: list[float] = field(default_factory=list)
    missing: int = 0
    probes: list[float] = field(default_factory=list)
    attempted: int = 0
    attempts: int = 0
    most_held: int = 0
    first_delivery_s: float | None = None
    ended_by_themselves: int = 0

    @property
    def longest_between_probes_s(self) -> float:
        return max((later - earlier for earlier, later in itertools.pairwise(self.probes)), default=0.0)

    def checks(self) -> dict[str, bool]:
        longest_lag, between = max(self.lags, default=0.0), self.longest_between_probes_s
        new = self.first_delivery_s
        return {
            f"calls of the good organization arrived ({len(self.lags):,}; {self.missing} missing)": bool(self.lags)
            and not self.missing,
            f"longest lag of the good destination {longest_lag:.1f} s (bound {LAG_S:.0f})": longest_lag < LAG_S,
            f"longest time between probes {between:.1f} s (interval {PROBE_EVERY_S}, bound"
            f" {LATEST_PROBE * PROBE_EVERY_S:.0f}; {len(self.probes)} probes)": len(self.probes) > 2
            and between < LATEST_PROBE * PROBE_EVERY_S,
            f"every silent destination was tried ({self.attempted} of {self.silent})": self.attempted == self.silent,
            f"silent destinations held all their slots at once, and no more ({self.most_held} of"
            f" {self.slots_of_silent})": self.most_held == self.slots_of_silent,
            f"a new destination got its first batch after {'no time' if new is None else f'{new:.1f} s'} (bound"
            f" {FIRST_DELIVERY_S:.0f})": new is not None and new < FIRST_DELIVERY_S,
            f"no program ended by itself ({self.ended_by_themselves})": not self.ended_by_themselves,
        }

    @property
    def holds(self) -> bool:
        return all(self.checks().values())

    def __str__(self) -> str:
        ordered = sorted(self.lags) or [0.0]
        half, most = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
        return "\n".join(
            [
                f"lag of the good destination: median {half:.1f} s, p99 {most:.1f} s, longest {ordered[-1]:.1f} s",
                f"requests that were never answered: {self.attempts}",
                *(f"{'ok  ' if is_kept else 'FAIL'} {bound}" for bound, is_kept in self.checks().items()),
            ]
        )


class Run:
    def __init__(self, folder: Path, environment: dict[str, str], noted: Noted, silent: SilentServer) -> None:
        self._folder, self._environment, self._noted, self._silent = folder, environment, noted, silent
        roles = {
            "worker": role_command("worker", [], environment),
            "shipping": role_command("shipping", [], environment),
            "beat": role_command("beat", ["--schedule", str(folder / "schedule")], environment),
        }
        self._services = [self._process(name, *command) for name, command in roles.items()]

    def play(self, *, seconds: float, silent: int, organizations: int, rate: float) -> Figures:
        self._do([sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"])
        good = uuid.UUID(self._do([*CROWD, "prepare", f"{self._noted.url}{self._noted.PROBED}"]).split()[-1])
        crowd = [uuid.UUID(int=number + 1) for number in range(organizations)]
        writer = self._process(
            "writer", *CROWD, "write", str(self._written), str(rate), *map(str, (good, NEW_ORG, *crowd))
        )
        self._add("good", self._noted.url, 1, [good])
        try:
            for each in self._services:
                each.start()
            if not until(lambda: GOOD in self._noted.arrivals, START_DEADLINE_S, pause_s=0.1):
                raise RuntimeError(f"nothing is delivered: see the logs in {self._folder}")
            writer.start()
            self._add(SILENT, self._silent.url, silent, crowd)
            began_s = time.time()
            self._wait(seconds / 2)
            self._add("new", self._noted.url, 1, [NEW_ORG])
            new_s = time.time()
            self._wait(seconds / 2)
            ended_s = time.time()
            writer.end()
            until(lambda: not self._missing(good), LAG_S, pause_s=0.1)
        finally:
            for each in (writer, *self._services):
                each.end()
        share = max(1, SLOTS // 8 // 2)
        figures = Figures(silent=silent, slots_of_silent=min(SLOTS // 2, share * organizations, silent))
        first = self._noted.first_arrival(NEW)
        figures.first_delivery_s = None if first is None else max(0.0, first - new_s)
        self._compare(good, figures, began_s, ended_s)
        return figures

    def _compare(self, good: uuid.UUID, figures: Figures, began_s: float, ended_s: float) -> None:
        arrived = self._noted.arrivals[GOOD]
        figures.lags = [arrived[name] - at for name, at in self._calls(good).items() if name in arrived]
        figures.missing = len(self._missing(good))
        figures.probes = [at for at in self._noted.probes if began_s <= at <= ended_s]
        figures.attempted, figures.attempts = len(self._silent.asked), self._silent.asked.total()
        figures.most_held = self._silent.most_held
        figures.ended_by_themselves = sum(each.ended_by_itself for each in self._services)

    @property
    def _written(self) -> Path:
        return self._folder / "written"

    def _calls(self, org_id: uuid.UUID) -> dict[str, float]:
        """When the commit of each call was confirmed. The last line may be a half: its writer was ended."""
        rows = (line.split() for line in self._written.read_text(encoding="ascii").rpartition("\n")[0].splitlines())
        return {name: float(at) for name, owner, at in rows if owner == str(org_id)}

    def _missing(self, good: uuid.UUID) -> set[str]:
        return self._calls(good).keys() - self._noted.arrivals[GOOD].keys()

    def _wait(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            for each in self._services:
                each.revive()
            time.sleep(0.2)

    def _add(self, name: str, url: str, number: int, orgs: list[uuid.UUID]) -> None:
        self._do([*CROWD, "destinations", name, url, str(number), *map(str, orgs)])

    def _process(self, name: str, *command: str) -> Process:
        return Process(command, self._environment, self._folder / f"{name}.log")

    def _do(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment, check=True, timeout=300, stdout=subprocess.PIPE, text=True
        )
        return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--silent", type=int, default=50, help="destinations that never answer (50)")
    parser.add_argument("--organizations", type=int, default=10, help="that they belong to (10)")
    parser.add_argument("--rate", type=float, default=4.0, help="calls a second of each organization (4)")
    parser.add_argument("--folder", type=Path, help="keeps logs there")
    options = parser.parse_args()
    programs = binaries()
    if programs is None or not is_installed():
        sys.stderr.write("Needs redis-server, and PostgreSQL's programs in /usr/lib/postgresql.\n")
        return 2
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="shipping-silent-"))
        folder = (options.folder or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        postgresql = stack.enter_context(postgresql_server(programs))
        redis = stack.enter_context(redis_server())
        environment = service_variables(folder, postgresql.url, redis.url)
        environment["HEALTH_PROBE_INTERVAL"] = str(PROBE_EVERY_S)
        noted, silent = stack.enter_context(answering_servers()), stack.enter_context(silent_server())
        figures = Run(folder, environment, noted, silent).play(
            seconds=options.minutes * 60, silent=options.silent, organizations=options.organizations, rate=options.rate
        )
    sys.stdout.write(f"{figures}\n")
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())
