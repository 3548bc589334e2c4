"""`manage.py explain_access`: explain step by step why a subject may or may not call a tool."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.lib.command_arguments import organization_id
from orgs.allowed_items import ItemType
from proxy.control_plane.explanation import explain_access


class Command(BaseCommand):
    """Exit code 2 when the call would be refused."""

    help = "Say step by step why SUBJECT may or may not call TOOL, or use it. No vendor is contacted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", metavar="SUBJECT", help="a person's id, or svc:<org-id>:<client-id>")
        parser.add_argument("tool", metavar="TOOL", help="its name as tools/list has it")
        parser.add_argument(
            "--kind",
            choices=[each.value for each in ItemType],
            help="TOOL is the address of a resource or the name of a prompt, as /v1/mcp lists it",
        )
        parser.add_argument("--org", help="the organization, for a person of several")

    def handle(self, *args: Any, subject: str, tool: str, org: str | None, kind: str | None, **options: Any) -> None:
        org_id = organization_id(org)
        # The functions that decide calls.
        explanation = explain_access(subject, tool, kind=ItemType(kind) if kind else None, org_id=org_id)
        for step in explanation.steps:
            self.stdout.write(f"{'ok  ' if step.passed else 'DENY'} {step.name}: {step.detail}")
        failing = explanation.failing
        if failing is not None:
            raise CommandError(f"Refused at {failing.name}. {failing.remedy}", returncode=2)
