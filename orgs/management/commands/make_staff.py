from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.lib.errors import DomainError
from orgs.services.people import make_staff


class Command(BaseCommand):
    help = "The person who signs in with EMAIL may open /admin: see every table, and use its actions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--view-only", action="store_true", help="see every table and change nothing")

    def handle(self, *args: Any, email: str, view_only: bool, **options: Any) -> None:
        try:
            person = make_staff(email, view_only=view_only)
        except DomainError as refusal:
            raise CommandError(refusal.sentences) from refusal
        self.stdout.write(f"{person.email} is support staff{' and may only look' if view_only else ''}.")
