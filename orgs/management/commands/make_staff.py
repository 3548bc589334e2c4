"""Give a person support access from the command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.lib.errors import DomainError
from orgs.services.people import make_staff


class Command(BaseCommand):
    """Find or make the person, print the new state."""

    help = "The person who signs in with EMAIL may open /admin: see every table, and use its actions."

    def add_arguments(self, parser: CommandParser) -> None:
        """The person, and the extent of the access."""
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--view-only", action="store_true", help="see every table and change nothing")

    def handle(self, *args: Any, email: str, view_only: bool, **options: Any) -> None:
        """Exit status 1 with the reason when the service refuses."""
        try:
            person = make_staff(email, view_only=view_only)
        except DomainError as refusal:
            reasons = [text for texts in refusal.fields.values() for text in texts] or [refusal.message]
            raise CommandError(" ".join(reasons)) from refusal
        self.stdout.write(f"{person.email} is support staff{' and may only look' if view_only else ''}.")
