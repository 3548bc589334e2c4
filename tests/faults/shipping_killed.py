"""Everything that log shipping needs is killed in mid-delivery: `python -m tests.faults.shipping_killed [--kills 20]`.

The worker, the beat, Redis, PostgreSQL with all its processes, and the receivers of two organizations get SIGKILL, each
kind so often, while calls are recorded. Then every confirmed record must have arrived, in order. The exit code is 1
when a check fails. PostgreSQL and Redis are servers of the run's own; the computer must have both programs.
`--claim-seconds 5` ends claims that nobody serves sooner than after their minute, for a shorter run: twice as late with
each claim that it ends between two kills.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import psycopg

from tests.fakes.postgresql_server import binaries, postgresql_server
from tests.fakes.redis_server import is_installed, redis_server
from tests.faults.shipping_figures import Figures, compare
from tests.faults.shipping_receiver import LONGEST_PAUSE_S
from tests.faults.shipping_stage import Part, Stage, migrate, service_variables, stage, until

LONGEST_DOWN_S = 1.0
LAG_DEADLINE_S = 120.0
DELIVERY_DEADLINE_S = 300.0  # longer than claims, waits after failures and starts together
WORKER, BEAT, REDIS, POSTGRESQL, RECEIVER = "worker", "beat", "redis", "postgresql", "receiver"


class Run:
    def __init__(self, on: Stage, servers: Mapping[str, Part], chance: random.Random, claim_s: float | None) -> None:
        self.stage, self._chance, self._claim_s = on, chance, claim_s
        self._parts = {WORKER: on.worker, BEAT: on.beat, **servers}
        self._quiet: dict[int, tuple[int, float]] = {}  # of each receiver: requests, and since when no more
        self._patience_s: dict[int, float] = {}  # of each receiver, since the last kill
        self.figures = Figures()

    def play(self, kills: Mapping[str, int], *, speaks: bool = False) -> Figures:
        """Kills, each kind so often, in any order; then waits for the rest, and compares."""
        began_s = time.monotonic()
        self.figures.asked = dict(kills)
        plan = [kind for kind, number in kills.items() for _ in range(number)]
        self._chance.shuffle(plan)
        for number, kind in enumerate(plan, start=1):
            self._kill(kind)
            if speaks:
                say(f"{time.monotonic() - began_s:6.0f} s  {number:3} of {len(plan)}: {kind}")
        self.stage.end_writers()
        until(self._is_done, LAG_DEADLINE_S, pause_s=0.1)
        self.figures.ended_by_themselves = sum(each.ended_by_itself for each in self.stage.processes)
        self.figures.seconds = time.monotonic() - began_s
        compare(self.stage, self.figures)
        return self.figures

    def _kill(self, kind: str) -> None:
        place = self._chance.randrange(len(self.stage.receivers))
        self._wait_for_a_request(place)
        part = self.stage.receivers[place] if kind == RECEIVER else self._parts[kind]
        # The receiver pauses before it keeps a batch, and again before it answers.
        time.sleep(self._chance.random() * 2 * LONGEST_PAUSE_S)
        part.kill()
        self._patience_s.clear()
        self.figures.kills[kind] += 1
        time.sleep(self._chance.random() * LONGEST_DOWN_S)
        part.start()

    def _wait_for_a_request(self, place: int) -> None:
        seen = self.stage.begun(place)

        def has_come() -> bool:
            self._look_after_the_stage()
            return self.stage.begun(place) > seen

        if not until(has_come, DELIVERY_DEADLINE_S):
            raise RuntimeError(f"nothing is delivered any more: see the logs in {self.stage.folder}")

    def _is_done(self) -> bool:
        self._look_after_the_stage()
        return self.stage.waiting() == 0

    def _look_after_the_stage(self) -> None:
        self.stage.revive()
        if self._claim_s is None:
            return
        now = time.monotonic()
        for place in range(len(self.stage.receivers)):
            begun = self.stage.begun(place)
            known, since = self._quiet.get(place, (-1, now))
            patience_s = self._patience_s.get(place, self._claim_s)
            if begun == known and now - since > patience_s:
                self.figures.claims_ended += self.stage.end_claim(place)
                since = now
                # It may have been the claim of a delivery that a busy machine makes slow. The next one has longer: to
                # end claims faster than batches arrive would end every one of them, and nothing would ever be done.
                self._patience_s[place] = 2 * patience_s
            self._quiet[place] = begun, since if begun == known else now


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def on_own_servers(folder: Path, programs: Path, options: argparse.Namespace) -> Figures:
    with postgresql_server(programs) as postgresql, redis_server() as redis:
        environment = service_variables(folder, postgresql.url, redis.url)
        migrate(environment)

        def connect() -> Any:
            return psycopg.connect(postgresql.url, autocommit=True, connect_timeout=10)

        with stage(folder, environment, connect, rate=options.rate) as on:
            servers = {REDIS: redis, POSTGRESQL: postgresql}
            run = Run(on, servers, random.Random(options.seed), options.claim_seconds)
            return run.play(dict.fromkeys((WORKER, BEAT, REDIS, POSTGRESQL, RECEIVER), options.kills), speaks=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each kind (20)")
    parser.add_argument("--rate", type=float, default=200.0, help="records a second (200)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="for the same order of kills")
    parser.add_argument("--claim-seconds", type=float, help="the service's own 60 unless given")
    parser.add_argument("--folder", type=Path, help="keeps logs and batches there")
    options = parser.parse_args()
    programs = binaries()
    if programs is None or not is_installed():
        sys.stderr.write("Needs redis-server, and PostgreSQL's programs in /usr/lib/postgresql.\n")
        return 2
    say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="shipping-killed-") as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        figures = on_own_servers(folder.resolve(), programs, options)
    say(str(figures))
    return 0 if figures.holds else 1


if __name__ == "__main__":
    sys.exit(main())
