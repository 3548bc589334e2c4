"""Set the exception of one organization from what its plan says of agent keys."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actor
from billing import services
from gateway.lib import ids
from orgs import selectors


class Command(BaseCommand):
    help = "Set whether agent keys can be created in organization ORG_ID: as its plan says, always, or never."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("org_id", metavar="ORG_ID")
        parser.add_argument("exception", metavar="plan|yes|no", choices=list(services.EXCEPTIONS))

    def handle(self, *args: Any, org_id: str, exception: str, **options: Any) -> None:
        key = ids.parse_id(org_id)
        organization = selectors.organization(key) if key else None
        if organization is None:
            raise CommandError(f"There is no organization {org_id}.")
        services.set_service_clients(
            actor=actor.system("set_service_clients"),
            organization=organization,
            service_clients=services.EXCEPTIONS[exception],
        )
        self.stdout.write(f"{organization.name}: {exception}")
