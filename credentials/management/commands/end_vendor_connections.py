"""End every connection to a vendor that people signed in to, before the vendor leaves the catalog."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandParser

from audit.actor import system
from credentials.models import VendorConnection
from credentials.services.vendor_connections import end_connections_to, organizations_connected_to


class Command(BaseCommand):
    """Spec: contract §8"""

    help = (
        "Ends the connections of all organizations and people to a vendor. The vendor is told by the worker; run this"
        " before the vendor, its client or its sign-in leaves the catalog. Keys stay. Without --really it only counts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the vendor's slug in the catalog")
        parser.add_argument("--really", action="store_true", help="end them")

    def handle(self, *, slug: str, really: bool, **options: object) -> None:
        """Safe to repeat and to interrupt."""
        if not really:
            count = VendorConnection.objects.filter(vendor=slug).count()
            self.stdout.write(f"{count} connections to {slug}; --really ends them")
            return
        actor = system("end_vendor_connections")
        ended = sum(end_connections_to(slug, org_id, actor=actor) for org_id in organizations_connected_to(slug))
        self.stdout.write(f"{ended} connections to {slug} ended; the worker tells the vendor within a minute")
