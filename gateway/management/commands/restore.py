"""`manage.py restore`: an installation of the embedded default from a file of `backup`. Contract: 6"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.recovery.back_ends import refuse_servers
from gateway.recovery.backup_file import UnusableBackup
from gateway.recovery.restore import RestoreRefused, restore_backup


class Command(BaseCommand):
    help = "Restore the installation in FILE into VAR, which must be empty or missing."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")

    def handle(self, *args: Any, file: str, **options: Any) -> None:
        refuse_servers()
        source = Path(file).expanduser().absolute()
        try:
            manifest = restore_backup(source, settings.VAR)
        except RestoreRefused as refusal:
            raise CommandError(str(refusal)) from None
        except UnusableBackup as fault:
            raise CommandError(f"{source} cannot be restored. {fault} Nothing was changed.") from None
        except OSError as fault:
            raise CommandError(f"{source} cannot be restored: {fault.strerror}. Nothing was changed.") from None
        self.stdout.write(f"{settings.VAR} holds the installation as it was at {manifest.made_at}.")
        self.stdout.write(
            "Before it starts, end again what ended since:"
            f' make manage VAR={settings.VAR} ARGS="after_restore --at {manifest.made_at} --journal FILE"'
        )
        if manifest.withheld:
            self.stdout.write(f"Give these to make run and make manage again: {', '.join(manifest.withheld)}.")
