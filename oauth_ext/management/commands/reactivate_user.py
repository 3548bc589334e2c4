"""Lets a deactivated person sign in again, from the command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actor
from gateway.lib.errors import DomainError
from oauth_ext.services.deactivation import reactivate_person
from orgs.services.people import find_person


class Command(BaseCommand):
    help = "The person with EMAIL may sign in again. Sessions, tokens, keys and support access stay ended."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the email address, or the id")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        try:
            person = reactivate_person(actor=actor.system("reactivate_user"), user_id=find_person(email).pk)
        except DomainError as refusal:
            # Exit status 1.
            raise CommandError(refusal.message) from refusal
        self.stdout.write(f"{person.email or person.pk} may sign in again. Ended sessions, tokens and keys stay ended.")
