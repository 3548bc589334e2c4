"""`manage.py replay_shipping`: deliver records to a destination again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from audit.actor import system
from audit.models import LogDestination
from audit.query_values import moment_of
from audit.shipping.destinations import replay
from audit.shipping.waiting import lag_of
from gateway.lib import clock, ids
from gateway.lib.errors import Invalid


class Command(BaseCommand):
    help = "Deliver the records from a time on to the destination ID again. Its organization's log names the replay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("destination", metavar="ID", help="as shipping_status lists it")
        parser.add_argument(
            "--since", required=True, metavar="ISO", help="a date, or a time such as 2026-01-31T08:00:00Z"
        )

    def handle(self, *args: Any, destination: str, since: str, **options: Any) -> None:
        key = ids.parse_id(destination)
        if key is None:
            raise CommandError(f"There is no destination {destination}.")
        try:
            moment = moment_of(since)
        except ValueError as fault:
            raise CommandError(str(fault)) from fault
        with transaction.atomic():
            row = LogDestination.objects.select_for_update().filter(pk=key).first()
            if row is None:
                raise CommandError(f"There is no destination {destination}.")
            try:
                replay(row, moment, actor=system("replay_shipping"))
            except Invalid as refusal:
                raise CommandError(refusal.sentences) from refusal
        lag = lag_of(row)
        number = f"more than {lag.records:,}" if lag.is_more else f"{lag.records:,}"
        paused = "" if row.enabled else " It is paused: they wait until it is resumed."
        self.stdout.write(f"{row.label} gets the records since {clock.rfc3339(moment)}: {number} wait.{paused}")
