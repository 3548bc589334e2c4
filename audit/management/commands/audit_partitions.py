"""`manage.py audit_partitions`: make the request log's partitions ahead and list all of them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import partitions
from gateway.lib import clock


class Command(BaseCommand):
    """The task audit.make_partitions does the same each night."""

    help = "Make the partitions of the coming months where they are missing, and list all with their sizes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--months", type=int, default=partitions.MONTHS_AHEAD, help="how many months ahead")

    def handle(self, *args: Any, months: int, **options: Any) -> None:
        if not partitions.is_partitioned():
            raise CommandError("Only PostgreSQL has partitions; SQLite keeps one table.")
        made = set(partitions.make_ahead(clock.now(), months))
        for each in partitions.sizes():
            note = "  made now" if each.name in made else ""
            self.stdout.write(f"{each.name:40} {each.rows:>12,} rows {each.mebibytes:>10,.1f} MiB{note}")
        if rows := partitions.default_rows():
            self.stdout.write(self.style.WARNING(f"{partitions.DEFAULT} holds at least {rows} rows."))
