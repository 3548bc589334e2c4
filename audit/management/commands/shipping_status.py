"""`manage.py shipping_status`: each destination of log shipping with its state and its lag."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from audit.models import LogDestination
from audit.shipping.waiting import lag_of
from gateway.lib import clock


class Command(BaseCommand):
    help = "List the destinations of all organizations: state, records that wait, last delivery and last error."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="a list of objects, named as over /api")

    def handle(self, *args: Any, as_json: bool, **options: Any) -> None:
        found = [_facts(row) for row in LogDestination.objects.order_by("org_id", "label", "id")]
        if as_json:
            self.stdout.write(json.dumps(found, indent=2))
            return
        for each in found:
            self.stdout.write(_line(each))
        if not found:
            self.stdout.write("There is no destination.")


def _facts(row: LogDestination) -> dict[str, Any]:
    lag = lag_of(row)
    return {
        "id": str(row.pk),
        "orgId": str(row.org_id),
        "label": row.label,
        "platform": row.platform,
        "enabled": row.enabled,
        "status": row.status,
        "lagRecords": lag.records,
        "lagSeconds": lag.seconds(clock.now()),
        "delivered": row.delivered,
        "refused": row.refused,
        "skipped": row.skipped,
        "lastDeliveryAt": _time(row.last_delivery_at),
        "nextAttemptAt": _time(row.next_attempt_at),
        "lastError": row.last_error or None,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else clock.rfc3339(moment)


def _line(facts: dict[str, Any]) -> str:
    state = facts["status"] if facts["enabled"] else f"paused ({facts['status']})"
    waits = f"{facts['lagRecords']:,} waiting" + (f" for {facts['lagSeconds']:,} s" if facts["lagRecords"] else "")
    counts = ", ".join(f"{facts[name]:,} {name}" for name in ("delivered", "refused", "skipped"))
    line = f"{facts['id']} of {facts['orgId']}: {facts['label']} ({facts['platform']}), {state}, {waits}, {counts}"
    line += f", last delivery {facts['lastDeliveryAt'] or 'never'}"
    return f"{line}, {facts['lastError']}" if facts["lastError"] else line
