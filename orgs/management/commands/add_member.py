from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from audit import actor
from gateway.lib import ids
from gateway.lib.errors import DomainError
from orgs import selectors
from orgs.roles import Role
from orgs.services.members import add_member
from orgs.services.people import person_named


class Command(BaseCommand):
    help = "Make the person who signs in with EMAIL a member of organization ORG_ID."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("org_id", metavar="ORG_ID")
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--role", choices=[role.value for role in Role], default=Role.MEMBER.value)

    @transaction.atomic
    def handle(self, *args: Any, org_id: str, email: str, role: str, **options: Any) -> None:
        key = ids.parse_id(org_id)
        organization = selectors.organization(key) if key else None
        if organization is None:
            raise CommandError(f"There is no organization {org_id}.")
        try:
            row = add_member(
                actor=actor.system("add_member"),
                organization=organization,
                user=person_named(email),
                role=Role(role),
            )
        except DomainError as refusal:
            raise CommandError(refusal.sentences) from refusal
        self.stdout.write(f"{row.user.email} is {row.role} of {organization.name}.")
