from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from gateway.lib.errors import DomainError
from orgs.services.organizations import create_organization
from orgs.services.people import person_named


class Command(BaseCommand):
    help = "Create an organization called NAME whose owner signs in with EMAIL."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("email", metavar="EMAIL")

    @transaction.atomic
    def handle(self, *args: Any, name: str, email: str, **options: Any) -> None:
        try:
            owner = person_named(email)
            organization = create_organization(actor=owner, name=name)
        except DomainError as refusal:
            raise CommandError(refusal.sentences) from refusal
        self.stdout.write(f"{organization.id} {organization.name}, owner {owner.email}")
