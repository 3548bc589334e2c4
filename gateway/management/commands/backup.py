"""`manage.py backup`: an installation of the embedded default in one file. Contract: 6"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.recovery.back_ends import refuse_servers
from gateway.recovery.backup import make_backup
from gateway.supervisor.options import StartRefused


class Command(BaseCommand):
    help = "Copy database, keys and variables of the installation in VAR into the new FILE, while it runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")

    def handle(self, *args: Any, file: str, **options: Any) -> None:
        refuse_servers()
        target = Path(file).expanduser().absolute()
        try:
            manifest = make_backup(settings.VAR, target)
        except (OSError, sqlite3.Error, StartRefused) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else str(fault)
            raise CommandError(f"No backup was made at {target}: {reason}.") from None
        mebibytes = target.stat().st_size / 1024**2
        self.stdout.write(f"{target}: {mebibytes:.1f} MiB with all keys; keep it secret.")
        self.stdout.write(f"After a restore: after_restore --at {manifest.made_at} --journal FILE")
        if manifest.withheld:
            self.stdout.write(
                f"Not in the backup, because they were given when the installation was started:"
                f" {', '.join(manifest.withheld)}."
            )
