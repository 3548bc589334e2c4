from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.lib.errors import DomainError
from orgs.services.people import find_person, revoke_staff


class Command(BaseCommand):
    help = "The person with EMAIL can no longer open /admin. Memberships, sessions and tokens stay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the email address, or the id")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        try:
            person = find_person(email)
        except DomainError as refusal:
            raise CommandError(refusal.message) from refusal
        had = revoke_staff(person)
        self.stdout.write(f"{person.email} {'is no longer support staff' if had else 'was not support staff'}.")
