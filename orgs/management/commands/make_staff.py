from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.lib.errors import DomainError
from orgs.services.people import make_staff


class Command(BaseCommand):
    help = "The person who signs in with EMAIL may open /admin: search, read and act there, and see every table."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        rights = parser.add_mutually_exclusive_group()
        rights.add_argument("--view-only", action="store_true", help="search and read, change nothing, see no table")
        rights.add_argument("--without-tables", action="store_true", help="search, read and act, see no table")

    def handle(self, *args: Any, email: str, view_only: bool, without_tables: bool, **options: Any) -> None:
        try:
            person = make_staff(email, view_only=view_only, without_tables=without_tables)
        except DomainError as refusal:
            raise CommandError(refusal.sentences) from refusal
        self.stdout.write(f"{person.email} is support staff{' and may only look' if view_only else ''}.")
