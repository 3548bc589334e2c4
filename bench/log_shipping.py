"""Log shipping after an outage: how fast one worker delivers what has waited, and with how much memory.

    BENCH_DATABASE_URL=postgres://user@127.0.0.1:5432/postgres python -m bench.log_shipping [--rows 2000000]

The rows of one organization are seeded by the server. A webhook's receiver runs in a process of its own and counts the
events. Deliveries run in this process, one after the other, as a worker's thread makes them. The run makes a database
of its own and drops it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from bench.databases import own_database
from bench.log_seed import seed_logs
from bench.processes import HOST, free_port

ORG_ID = uuid.UUID(int=1)  # the first organization of the seed
REPORTED_EVERY = 20  # turns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    options = parser.parse_args()
    server = os.environ.get("BENCH_DATABASE_URL", "")
    if not server.startswith("postgres"):
        parser.error("BENCH_DATABASE_URL must name a PostgreSQL server.")
    with receiving() as (port, received), own_database(server) as url:
        set_up(url)
        seed_logs(url, options.rows, options.rows // 100, orgs=1)
        _deliver_all(port, received)
    return 0


@contextmanager
def receiving() -> Iterator[tuple[int, Synchronized[int]]]:
    """(port, count of received records) of a receiver in a process of its own."""
    received: Synchronized[int] = multiprocessing.Value("q", 0)
    port = free_port()
    receiver = multiprocessing.Process(target=receive, args=(port, received), daemon=True)
    receiver.start()
    try:
        yield port, received
    finally:
        receiver.terminate()
        receiver.join()


def set_up(url: str) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings", "SHIPPING_MIB_PER_HOUR": "1000000"}
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _deliver_all(port: int, received: Synchronized[int]) -> None:
    from django.db import transaction

    from audit.actor import system
    from audit.models import LogDestination
    from audit.shipping import destinations
    from audit.shipping.claims import claim_due
    from audit.shipping.delivery import deliver
    from gateway.lib import clock

    with transaction.atomic():
        destination = destinations.create(
            org_id=ORG_ID,
            actor=system("bench"),
            label="Receiver",
            platform="webhook",
            endpoint_url=f"http://{HOST}:{port}/events",
            config={"secret": "a secret of the bench"},
        )
    # Everything that there is waits.
    LogDestination.objects.filter(pk=destination.pk).update(
        requests_position=0, admin_position=0, created_at=clock.now()
    )
    began_s, before_kib, handled, turns = time.monotonic(), _memory_kib(), 0, 0
    while claimed := claim_due():
        handled += sum(deliver(pk, claim) for pk, claim in claimed)
        turns += 1
        if turns % REPORTED_EVERY == 0:
            _print(handled, began_s, before_kib)
    _print(handled, began_s, before_kib)
    destination.refresh_from_db()
    sys.stdout.write(
        f"received {received.value:,}, delivered {destination.delivered:,}, refused {destination.refused}, skipped"
        f" {destination.skipped}, last error {destination.last_error!r}\n"
    )


def _print(handled: int, began_s: float, before_kib: int) -> None:
    took_s = max(time.monotonic() - began_s, 0.001)
    grown_mib = (_memory_kib() - before_kib) / 1024
    sys.stdout.write(f"{handled:,} in {took_s:.0f} s, {handled / took_s:,.0f} a second, memory {grown_mib:+.1f} MiB\n")
    sys.stdout.flush()


def _memory_kib() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


def receive(port: int, received: Synchronized[int]) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with received.get_lock():
                received.value += len(json.loads(body)["events"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    ThreadingHTTPServer((HOST, port), Handler).serve_forever()


if __name__ == "__main__":
    sys.exit(main())
