"""Open every stored credential and report those that do not open. Prints no value."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError

from credentials.verification import verify_credentials


class Command(BaseCommand):
    """Spec: D68 · reliability.md 4"""

    help = "Opens every stored credential without printing any of it; exit code 1 if one does not open."

    def handle(self, **options: object) -> None:
        opened = unusable = 0
        for each in verify_credentials():
            if each.fault is None:
                opened += 1
                continue
            unusable += 1
            self.stdout.write(
                f"{each.fault.value}: {each.scope.value} credential {each.credential_id} for {each.vendor}"
                f" of organization {each.organization_id}"
            )
        self.stdout.write(f"{opened} open, {unusable} do not")
        if unusable:
            raise CommandError(f"{unusable} credentials cannot be opened.", returncode=1)
