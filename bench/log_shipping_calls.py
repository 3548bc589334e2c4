"""The calls' p99 while one worker of log shipping catches up, beside the p99 while it has nothing to do.

    BENCH_DATABASE_URL=postgres://user@127.0.0.1:5432/postgres python -m bench.log_shipping_calls [--pairs 8]

Gateway, worker of log shipping and beat run with their own commands on one database with two million records of one
organization; BENCH_REDIS_URL names a Redis for them. Calls of two other organizations go to the gateway over
127.0.0.1 for so many seconds, in pairs: with the destination paused, and while it takes the records. Nothing is pinned.
Vendor, receiver and load generator share the cores as well, which elsewhere they would not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import psycopg
import redis

from bench import targets
from bench.databases import back_ends
from bench.gateway import GatewayServer
from bench.load import Outcome
from bench.log_seed import seed_logs
from bench.log_shipping import ORG_ID, receiving, set_up
from bench.placement import Placement
from bench.processes import HOST, BenchFailed, Processes, python_module
from bench.stage import START_TIMEOUT_S, LoadGenerator, VendorServer
from gateway.container.entrypoint import role_command
from gateway.supervisor.services import shipping_command

ROOT = Path(__file__).resolve().parent.parent
BOUND = 0.10
AT_WORK = 5_000  # records that the receiver has got before a measurement
AT_WORK_DEADLINE_S = 60.0
QUEUES = "gateway:queue:*"
_PAUSE = "UPDATE audit_logdestination SET enabled = false, claim = NULL, claimed_until = NULL"
_RESUME = "UPDATE audit_logdestination SET enabled = true, next_attempt_at = now()"


@dataclass(frozen=True)
class Side:
    """One measurement. `records_per_s` were delivered meanwhile."""

    outcome: Outcome
    records_per_s: float


class Shipping:
    """The catch-up, which is switched on and off."""

    def __init__(self, database_url: str, received: Synchronized[int]) -> None:
        self._database_url, self._received = database_url, received

    @property
    def received(self) -> int:
        return int(self._received.value)

    def start(self) -> None:
        self._do(_RESUME)
        before, give_up_at = self.received, time.monotonic() + AT_WORK_DEADLINE_S
        while self.received < before + AT_WORK:
            if time.monotonic() > give_up_at:
                raise BenchFailed("the worker of log shipping delivers nothing, or all is delivered: give more --rows")
            time.sleep(0.05)

    def stop(self) -> None:
        """The batch under way has ended, too."""
        self._do(_PAUSE)
        before = -1
        while self.received != before:
            before = self.received
            time.sleep(1.0)

    def _do(self, statement: str) -> None:
        with psycopg.connect(self._database_url, autocommit=True) as connection:
            connection.execute(statement)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement (10)")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--delay-ms", type=int, default=50, help="the vendor's own time (50)")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--add-destination", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.add_destination:
        _add_destination(options.add_destination)
        return 0
    if not os.environ.get("BENCH_DATABASE_URL", "").startswith("postgres"):
        parser.error("BENCH_DATABASE_URL must name a PostgreSQL server.")
    with receiving() as (port, received), tempfile.TemporaryDirectory(prefix="gateway-shipping-") as name:
        _measure_all(options, Path(name), f"http://{HOST}:{port}/events", received)
    return 0


def _measure_all(options: argparse.Namespace, folder: Path, url: str, received: Synchronized[int]) -> None:
    placement = Placement()
    with back_ends(os.environ) as found, _own_queues(), Processes(ROOT, folder) as processes:
        database_url = found.environment["DATABASE_URL"]
        found.environment["SHIPPING_MIB_PER_HOUR"] = "1000000"
        set_up(database_url)
        seed_logs(database_url, options.rows, options.rows // 100, orgs=1)
        vendor, load = VendorServer(processes, placement), LoadGenerator(processes, placement)
        vendor.set(options.delay_ms, "json")
        gateway = GatewayServer(processes, placement, vendor, found, folder)
        environment = gateway.environment
        adding = processes.start(
            "destination", python_module("bench.log_shipping_calls", "--add-destination", url), environment=environment
        )
        adding.wait(timeout_s=START_TIMEOUT_S)
        processes.start("shipping", shipping_command(environment), environment=environment)
        beat = role_command("beat", ["--schedule", str(folder / "beat-schedule")], environment)
        processes.start("beat", beat, environment=environment)
        target = gateway.target(targets.MCP_KEY)
        shipping = Shipping(database_url, received)

        def measure() -> Side:
            before, began_s = shipping.received, time.monotonic()
            outcome = load.run(
                target, connections=options.connections, warm_up_s=1, measure_s=options.seconds, meters={}
            )
            return Side(outcome, (shipping.received - before) / (time.monotonic() - began_s))

        _say(f"{found.description}; {options.connections} callers, a vendor that takes {options.delay_ms} ms")
        shipping.stop()
        measure()
        pairs = [_pair(shipping, measure, is_first=number % 2 == 0) for number in range(options.pairs)]
    _report(pairs)


@contextmanager
def _own_queues() -> Iterator[None]:
    """The keys of queues that the run made in Redis are gone afterwards."""
    url = os.environ.get("BENCH_REDIS_URL")
    if not url:
        yield
        return
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        before = set(client.scan_iter(match=QUEUES, count=1000))
        try:
            yield
        finally:
            for key in set(client.scan_iter(match=QUEUES, count=1000)) - before:
                client.delete(key)


def _pair(shipping: Shipping, measure: Callable[[], Side], *, is_first: bool) -> tuple[Side, Side]:
    """(without, with) the catch-up. They take turns at being first."""
    quiet = measure() if is_first else None
    shipping.start()
    busy = measure()
    shipping.stop()
    quiet = quiet or measure()
    _say(f"{_figures(quiet)}   {_figures(busy)}, {busy.records_per_s:,.0f} records/s   p99 {_change(quiet, busy):+.1%}")
    return quiet, busy


def _report(pairs: list[tuple[Side, Side]]) -> None:
    changes = sorted(_change(*pair) for pair in pairs)
    change = statistics.median(changes)
    rate = statistics.median(busy.records_per_s for _, busy in pairs)
    bad = sum(side.outcome.bad + side.outcome.unanswered for pair in pairs for side in pair)
    _say(f"p50 changes by {statistics.median(_change(*pair, name='p50_ms') for pair in pairs):+.1%}")
    _say(
        f"p99 changes by {change:+.1%}, the median of {len(pairs)} pairs from {changes[0]:+.1%} to {changes[-1]:+.1%}"
        f" (line {BOUND:.0%}: {'holds' if change < BOUND else 'DOES NOT HOLD'})"
    )
    _say(f"meanwhile {rate:,.0f} records/s; {bad} bad answers")


def _change(quiet: Side, busy: Side, name: str = "p99_ms") -> float:
    return float(getattr(busy.outcome, name) / getattr(quiet.outcome, name) - 1)


def _figures(side: Side) -> str:
    found = side.outcome
    return f"p50 {found.p50_ms:.1f} p99 {found.p99_ms:.1f} ms, {found.good / found.seconds:,.0f} calls/s"


def _add_destination(url: str) -> None:
    """In the gateway's environment. Everything that there is waits for it, and it is paused."""
    from gateway.supervisor.preparation import load_settings

    load_settings()
    from django.db import transaction

    from audit.actor import system
    from audit.models import LogDestination
    from audit.shipping import destinations

    with transaction.atomic():
        made = destinations.create(
            org_id=ORG_ID,
            actor=system("bench"),
            label="Receiver",
            platform="webhook",
            endpoint_url=url,
            config={"secret": "a secret of the bench"},
        )
        LogDestination.objects.filter(pk=made.pk).update(requests_position=0, admin_position=0, enabled=False)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
