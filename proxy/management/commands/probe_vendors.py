"""Look at every vendor in use: once, or at each interval where no scheduler runs."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import close_old_connections

from gateway.coordination import registry
from proxy.health.monitor import run_round
from proxy.health.states import LABELS
from proxy.health.turns import is_our_turn, vendors_to_probe


class Command(BaseCommand):
    """Beside a scheduler it does no harm: whoever comes first in an interval leads."""

    help = "Probes every vendor that somebody connected, at each interval, or one time with --once."

    def add_arguments(self, parser: CommandParser) -> None:
        """How often."""
        parser.add_argument("--once", action="store_true", help="one round at once, then exit")

    def handle(self, *, once: bool, **options: object) -> None:
        """One line per vendor and round."""
        store = registry.current()
        while True:
            if once or is_our_turn(store):
                found = asyncio.run(run_round(store, vendors_to_probe()))
                for slug, health in sorted(found.items()):
                    detail = f", {health.error_detail}" if health.error_detail else ""
                    self.stdout.write(f"{slug}: {LABELS[health.status]}, {health.latency_ms} ms{detail}")
                if not found:
                    self.stdout.write("No vendor in use can be probed.")
                self.stdout.flush()  # the next round may be long in coming, and nobody may watch a terminal
            if once:
                return
            time.sleep(settings.HEALTH_PROBE_INTERVAL_S)
            close_old_connections()  # one that died meanwhile must not end the loop
