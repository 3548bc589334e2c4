"""Revokes a leaked agent key from the command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actor
from gateway.coordination import epochs, outbox
from gateway.lib.errors import NotFound
from oauth_ext import selectors
from oauth_ext.services import agent_keys


class Command(BaseCommand):
    help = "Revoke the agent key of the service client CLIENT_ID. The client itself stays as it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID", help="svc_...")

    def handle(self, *args: Any, client_id: str, **options: Any) -> None:
        try:
            client = selectors.service_client_of_any_organization(client_id)
        except NotFound:
            raise CommandError(f"There is no service client {client_id}.") from None
        try:
            agent_keys.revoke_agent_key(actor=actor.system("revoke_agent_key"), client=client)
        except NotFound:
            raise CommandError(f"{client_id} has no agent key.") from None
        if outbox.relayed_in_time():
            self.stdout.write(f"The agent key of {client_id} ({client.name}) no longer works.")
        else:
            self.stdout.write(f"The agent key of {client_id} ({client.name}) is revoked. {epochs.NOT_RELAYED_YET}")
