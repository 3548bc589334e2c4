"""Set an organization's subscription by hand, for deployments without a payment provider."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actor
from billing import services
from billing.errors import ProviderDecides
from billing.states import SubscriptionStatus
from gateway.lib import ids
from orgs import selectors


class Command(BaseCommand):
    help = "Set the subscription of organization ORG_ID to STATUS."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("org_id", metavar="ORG_ID")
        parser.add_argument("status", metavar="STATUS", choices=[status.value for status in SubscriptionStatus])
        parser.add_argument(
            "--service-clients",
            choices=list(services.EXCEPTIONS),
            default="",
            help="whether agent keys can be created: as the plan says, always, or never; unchanged if left out",
        )

    def handle(self, *args: Any, org_id: str, status: str, service_clients: str, **options: Any) -> None:
        key = ids.parse_id(org_id)
        organization = selectors.organization(key) if key else None
        if organization is None:
            raise CommandError(f"There is no organization {org_id}.")
        try:
            services.set_subscription(
                actor=actor.system("set_subscription"),
                organization=organization,
                status=SubscriptionStatus(status),
                service_clients=service_clients,
            )
        except ProviderDecides as refusal:
            raise CommandError(f"{refusal.message} For agent keys alone there is set_service_clients.") from None
        self.stdout.write(f"{organization.name}: {status}")
