"""Each part of an installation breaks in turn, and the alert that is about it must know within a minute.

`python -m tests.faults.alerts_raised [--scrape-seconds 5] [--only NAME ...]`

Web processes, workers, schedule, Redis, PostgreSQL, vendor, identity provider and log destination are killed or paused
while an agent calls, under a Prometheus with the shipped rules. For each alert it prints the seconds until its
expression was true, and until it was false again after the repair. The exit code is 1 when one took longer than 60 s to
be true, or did not end. Needs prometheus, redis-server and PostgreSQL's programs; all servers are the run's own. It
takes half an hour.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import yaml

from tests.fakes import postgresql_server, prometheus, redis_server
from tests.faults.alerts_stage import Installation, installation

TRUE_WITHIN_S = 60.0
# Rates look back for five minutes.
FALSE_WITHIN_S = 420.0
QUIET_WITHIN_S = 180.0
LOOK_EVERY_S = 0.5
PROCESSES, SCHEDULE, ROLLUP, SHIPPING = (
    f"Gateway{name}" for name in ("ProcessesAway", "ScheduleSilent", "RollupBehind", "LogShippingBehind")
)
DESTINATIONS = "GatewayLogDestinationsFailing"
COORDINATION, DATABASE, UNAVAILABLE, CIRCUIT = (
    f"Gateway{name}" for name in ("CoordinationAway", "DatabaseAway", "CallsUnavailable", "VendorCircuitOpen")
)
PROVIDER, PARTITIONS, SLOW = (f"Gateway{name}" for name in ("IdentityProviderAway", "PartitionsMissing", "AuditSlow"))


@dataclass(frozen=True)
class Fault:
    """`raises`: the alerts that are about it. Others may become true too, and are printed."""

    name: str
    raises: Sequence[str]
    breaks: Callable[[Installation], None]
    mends: Callable[[Installation], None]


def killed(part: str, *raises: str) -> Fault:
    return Fault(f"{part} killed", raises, lambda on: on.processes[part].kill(), lambda on: on.restart(part))


def paused(part: str, *raises: str) -> Fault:
    return Fault(f"{part} paused", raises, lambda on: on.processes[part].pause(), lambda on: on.processes[part].go_on())


FAULTS = (
    killed("metrics", PROCESSES),
    killed("web", PROCESSES),
    killed("worker", PROCESSES, SCHEDULE, ROLLUP),
    paused("worker", SCHEDULE, ROLLUP),
    killed("beat", SCHEDULE, ROLLUP, SHIPPING),
    killed("shipping", SCHEDULE, SHIPPING),
    killed("destination", DESTINATIONS),
    paused("destination", DESTINATIONS),
    killed("vendor", CIRCUIT),
    paused("vendor", CIRCUIT),
    killed("identity", PROVIDER),
    paused("identity", PROVIDER),
    Fault("redis killed", (COORDINATION,), lambda on: on.redis.kill(), lambda on: on.redis.start()),
    Fault("redis paused", (COORDINATION,), lambda on: on.redis.hang(), lambda on: on.redis.go_on()),
    Fault("partition dropped", (PARTITIONS,), Installation.drop_partitions, Installation.make_partitions),
    Fault(
        "postgresql killed", (DATABASE, UNAVAILABLE), lambda on: on.postgresql.kill(), lambda on: on.postgresql.start()
    ),
    Fault("postgresql paused", (DATABASE,), lambda on: on.postgresql.hang(), lambda on: on.postgresql.go_on()),
    Fault("commits slow", (SLOW,), Installation.slow_down_commits, Installation.speed_up_commits),
)


@dataclass
class Outcome:
    """Seconds by alert; None when the deadline passed first. `others`: alerts that became true as well."""

    fault: str
    true_after_s: dict[str, float | None] = field(default_factory=dict)
    false_after_s: dict[str, float | None] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    @property
    def holds(self) -> bool:
        seconds = [*self.true_after_s.values(), *self.false_after_s.values()]
        return bool(seconds) and None not in seconds

    def __str__(self) -> str:
        lines = [
            f"{self.fault:20} {alert:30} {_seconds(self.true_after_s[alert])} {_seconds(self.false_after_s.get(alert))}"
            for alert in self.true_after_s
        ]
        if self.others:
            lines.append(f"{'':20} also: {', '.join(sorted(self.others))}")
        return "\n".join(lines)


def _seconds(value: float | None) -> str:
    return "   never" if value is None else f"{value:6.1f} s"


class Run:
    def __init__(self, on: Installation) -> None:
        self._on = on
        self._expressions = on.prometheus.alerts()

    def play(self, faults: Iterable[Fault], tell: Callable[[object], None]) -> list[Outcome]:
        outcomes = []
        for fault in faults:
            outcome = self._one(fault)
            tell(outcome)
            outcomes.append(outcome)
        return outcomes

    def _one(self, fault: Fault) -> Outcome:
        outcome = Outcome(fault.name)
        if self._until({*fault.raises}, QUIET_WITHIN_S, is_true=False)[1]:
            outcome.true_after_s = dict.fromkeys(fault.raises)  # it was true before, or never got quiet
            return outcome
        before = self._true()
        fault.breaks(self._on)
        try:
            outcome.true_after_s, _ = self._until(fault.raises, TRUE_WITHIN_S, is_true=True)
            outcome.others = self._true() - before - {*fault.raises}
        finally:
            fault.mends(self._on)
        outcome.false_after_s, _ = self._until(fault.raises, FALSE_WITHIN_S, is_true=False)
        return outcome

    def _true(self) -> set[str]:
        return {name for name, expression in self._expressions.items() if self._on.prometheus.is_true(expression)}

    def _until(
        self, alerts: Collection[str], within_s: float, *, is_true: bool
    ) -> tuple[dict[str, float | None], set[str]]:
        """The seconds of each alert until its expression was so, and the alerts that never were."""
        began_s, found = time.monotonic(), dict[str, float | None].fromkeys(alerts)
        left = set(alerts)
        while left:
            if not is_true:
                self._on.revive()
            so = {alert for alert in left if self._on.prometheus.is_true(self._expressions[alert]) is is_true}
            passed_s = time.monotonic() - began_s
            if passed_s > within_s:
                break
            found |= dict.fromkeys(so, passed_s)
            left -= so
            time.sleep(LOOK_EVERY_S if left else 0)
        return found, left


def named_alerts() -> list[str]:
    groups = yaml.safe_load(prometheus.RULES.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


def missing_programs() -> list[str]:
    present = {
        "prometheus": prometheus.is_installed(),
        "redis-server": redis_server.is_installed(),
        "PostgreSQL's programs": postgresql_server.binaries() is not None,
    }
    return [name for name, is_there in present.items() if not is_there]


def measured(folder: Path, faults: Sequence[Fault], *, scrape_s: int, tell: Callable[[object], None]) -> list[Outcome]:
    programs = postgresql_server.binaries()
    assert programs is not None
    with installation(folder, programs, scrape_s=scrape_s) as on:
        outcomes = Run(on).play(faults, tell)
        tell(f"answers: {dict(on.calls.statuses)}")
    return outcomes


def say(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scrape-seconds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="names of faults, or beginnings of them")
    parser.add_argument("--folder", type=Path, help="keeps logs there")
    options = parser.parse_args()
    if missing := missing_programs():
        parser.error(f"needs {', '.join(missing)}")
    chosen = [fault for fault in FAULTS if not options.only or fault.name.startswith(tuple(options.only))]
    os.environ.pop("REDIS_URL", None)  # the run has its own
    with tempfile.TemporaryDirectory(prefix="alerts-") as name:
        folder = (options.folder or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        say(f"{'fault':20} {'alert':30}     true    false")
        outcomes = measured(folder, chosen, scrape_s=options.scrape_seconds, tell=say)
    holds = bool(outcomes) and all(outcome.holds for outcome in outcomes)
    say("GOOD" if holds else "BROKEN")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
