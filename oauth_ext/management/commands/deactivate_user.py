"""Shuts a person out from the command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actor
from gateway.coordination import epochs, outbox
from gateway.lib.errors import DomainError
from oauth_ext.services.deactivation import deactivate_person
from orgs.services.people import find_person


class Command(BaseCommand):
    help = (
        "End the sessions, tokens and support access of the person with EMAIL, and the agent keys that this person"
        " created, at once. Memberships stay and give nothing until reactivate_user."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the email address, or the id")
        parser.add_argument(
            "--keep-agent-keys",
            action="store_true",
            help="agent keys that the person created go on working; the person may have copies of them",
        )

    def handle(self, *args: Any, email: str, keep_agent_keys: bool, **options: Any) -> None:
        try:
            ended = deactivate_person(
                actor=actor.system("deactivate_user"),
                user_id=find_person(email).pk,
                ends_agent_keys=not keep_agent_keys,
            )
        except DomainError as refusal:
            # Exit status 1.
            raise CommandError(refusal.message) from refusal
        for line in ended.lines():
            self.stdout.write(line)
        if not outbox.relayed_in_time():
            self.stdout.write(epochs.NOT_RELAYED_YET)
