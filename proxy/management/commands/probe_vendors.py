"""`manage.py probe_vendors`: probe all vendors in use, once or in each interval."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import close_old_connections

from gateway.coordination import backend
from proxy.control_plane.health.leader import claim_round, vendors_to_probe
from proxy.control_plane.health.monitor import run_round
from proxy.control_plane.health.states import LABELS


class Command(BaseCommand):
    help = "Probes every vendor that someone has connected, at each interval, or once with --once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="one round at once, then exit")

    def handle(self, *, once: bool, **options: object) -> None:
        store = backend.current()
        while True:
            # Safe beside a scheduler: only the first process in an interval probes.
            if once or claim_round(store):
                found = asyncio.run(run_round(store, vendors_to_probe()))
                for slug, health in sorted(found.items()):
                    detail = f", {health.error_detail}" if health.error_detail else ""
                    self.stdout.write(f"{slug}: {LABELS[health.status]}, {health.latency_ms} ms{detail}")
                if not found:
                    self.stdout.write("No vendor in use can be probed.")
                self.stdout.flush()  # the next round may be far off, and stdout may be a file
            if once:
                return
            time.sleep(settings.HEALTH_PROBE_INTERVAL_S)
            close_old_connections()  # a connection that died meanwhile must not end the loop
