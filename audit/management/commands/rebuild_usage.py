"""`manage.py rebuild_usage`: recount roll-ups of the request log, beside the running service."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.filters import Filters
from audit.usage.rebuild import RollUpBusy, rebuild
from gateway.lib import clock
from gateway.lib.command_arguments import organization_id
from gateway.lib.errors import Invalid


class Command(BaseCommand):
    help = "Count the calls of whole hours again, from the request log. Hours that the log has lost stay as they are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--org", metavar="ORG_ID", help="the organization's id; default: all organizations")
        parser.add_argument("--start", default="1970-01-01", help="a date, or a time such as 2026-01-31T08:00:00Z")
        parser.add_argument("--end", default="", help="as --start, and inclusive; now by default")

    def handle(self, *args: Any, org: str | None, start: str, end: str, **options: Any) -> None:
        org_id = organization_id(org)
        try:
            bounds = Filters.parse({}, {"start": start, "end": end})
        except Invalid as refusal:
            raise CommandError(refusal.sentences) from refusal
        if bounds.start_at is None:
            raise CommandError("--start names no time.")
        days = calls = 0
        try:
            for day in rebuild(org_id, bounds.start_at, bounds.end_before or clock.now() + timedelta(hours=1)):
                self.stdout.write(f"{day.org_id} {day.day}: {day.calls} calls")
                days, calls = days + 1, calls + day.calls
        except RollUpBusy as fault:
            raise CommandError("Another process rolls up. Try again.") from fault
        self.stdout.write(f"Recounted {calls} calls of {days} days.")
