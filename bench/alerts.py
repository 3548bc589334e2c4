"""`python -m bench.alerts`: one vendor of many organizations goes down at once; the cost of telling them all.

Prints the seconds of a quiet round of looking, of the round that tells every organization, of the delivery to their
webhooks (one in ten does not answer), and of the health probes alone and beside it. The service runs inside this
process, on a throw-away database (DATABASE_URL chooses the server, SQLite otherwise). Exit code 1: one came late.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxy.control_plane.health.states import HealthStatus

SLUG = "acme"
SILENT_EVERY = 10  # of the receivers, one does not answer
PROBE_WITHIN_S, TOLD_WITHIN_S = 5.0, 60.0


class _Receiver(BaseHTTPRequestHandler):
    """Accepts what is posted; below /silent/ it waits until the bench ends."""

    over = threading.Event()
    accepted: list[float] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/silent/"):
            self.over.wait()
            return
        self.accepted.append(time.monotonic())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Nothing: a line for each request would be thousands."""


@contextmanager
def receiver() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        _Receiver.over.set()
        server.shutdown()
        thread.join()


@dataclass
class Figures:
    """Seconds."""

    quiet_round: float = 0.0
    telling_round: float = 0.0
    told: int = 0
    delivered: int = 0
    last_delivery: float = 0.0
    probes_alone: float = 0.0
    probes_beside: float = 0.0

    def lines(self) -> list[str]:
        return [
            f"a round with nothing to tell: {self.quiet_round:.2f} s",
            f"the round that tells {self.told}: {self.telling_round:.2f} s",
            f"webhooks that answer: {self.delivered}, the last after {self.last_delivery:.1f} s",
            f"probes of 20 vendors: {self.probes_alone:.2f} s alone, {self.probes_beside:.2f} s beside the delivery",
        ]


def measure(organizations: int) -> Figures:
    """Django is ready, the database empty."""
    from proxy.control_plane.alerts.delivery import deliver_waiting
    from proxy.control_plane.alerts.watch import watch
    from proxy.control_plane.health.states import HealthStatus

    figures = Figures()
    with receiver() as url:
        _seed(organizations, url)
        _see(HealthStatus.HEALTHY)
        watch()
        _, figures.quiet_round = _timed(watch)
        _, figures.probes_alone = _timed(_probe)
        _see(HealthStatus.DOWN)
        figures.told, figures.telling_round = _timed(watch)
        began = time.monotonic()
        probing = threading.Thread(target=lambda: setattr(figures, "probes_beside", _timed(_probe)[1]))
        probing.start()
        while len(_Receiver.accepted) < _answering(organizations) and time.monotonic() - began < 10 * TOLD_WITHIN_S:
            deliver_waiting()
        probing.join()
        figures.delivered = len(_Receiver.accepted)
        figures.last_delivery = max(_Receiver.accepted, default=began) - began
    return figures


def _answering(organizations: int) -> int:
    return sum(number % SILENT_EVERY != 0 for number in range(organizations))


def _timed(work: Callable[[], int]) -> tuple[int, float]:
    began = time.monotonic()
    result = work()
    return result, time.monotonic() - began


def _seed(organizations: int, url: str) -> None:
    from credentials.models import Credential
    from gateway.lib.secrets import random_webhook_secret
    from orgs.models import AlertSettings, Membership, Organization
    from orgs.roles import Role
    from orgs.services.alert_secret_sealing import Secrets, seal_secrets
    from tests.factories.cast import make_person
    from tests.factories.tenant import load_vendor

    load_vendor("http://127.0.0.1:9/mcp", slug=SLUG)
    owner = make_person("owner")
    made = Organization.objects.bulk_create(Organization(name=f"Organization {each}") for each in range(organizations))
    Membership.objects.bulk_create(Membership(organization=each, user=owner, role=Role.OWNER) for each in made)
    Credential.objects.bulk_create(
        Credential(organization=each, vendor=SLUG, scope="organization", data_key_version=1, sealed=b"")
        for each in made
    )
    rows = []
    for number, each in enumerate(made):
        key_id, sealed = seal_secrets(Secrets(random_webhook_secret()), each.pk)
        place = "silent" if number % SILENT_EVERY == 0 else "hook"
        row = AlertSettings(organization=each, webhook_url=f"{url}/{place}/{number}")
        row.secret_key_id, row.secret_sealed = key_id, sealed
        rows.append(row)
    AlertSettings.objects.bulk_create(rows)


def _see(status: HealthStatus) -> None:
    from gateway.coordination import backend
    from gateway.lib import clock
    from proxy.control_plane.health import state_cache
    from proxy.control_plane.health.states import VendorHealth

    state_cache.write(backend.current(), SLUG, VendorHealth(status, clock.now()))


def _probe() -> int:
    from gateway.catalog.vendor import Vendor
    from gateway.coordination import backend
    from proxy.control_plane.health.monitor import run_round

    vendors = [
        Vendor(slug=f"other{each}", name="Other", url="http://127.0.0.1:9/mcp", tool_prefix="o") for each in range(20)
    ]
    return len(asyncio.run(run_round(backend.current(), vendors, jitter_s=0)))


def main(arguments: Sequence[str]) -> int:
    """Prints the figures. 1: a probe or a delivery came late, or one is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--organizations", type=int, default=1_000)
    options = parser.parse_args(arguments)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("LOG_LEVEL", "ERROR")  # each receiver that does not answer would be a line
    import django

    django.setup()
    from django.conf import settings
    from django.test.utils import get_runner

    settings.ALLOW_PRIVATE_ENDPOINTS = True
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        figures = measure(options.organizations)
    finally:
        runner.teardown_databases(databases)
    print("\n".join(figures.lines()))
    is_late = figures.probes_beside > PROBE_WITHIN_S or figures.last_delivery > TOLD_WITHIN_S
    return int(
        is_late or figures.told != options.organizations or figures.delivered < _answering(options.organizations)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
