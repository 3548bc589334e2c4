"""The back ends that `backup` and `restore` are for."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import connection

GUIDE = "docs/operations/backup.md"


def refuse_servers() -> None:
    """Raises: CommandError unless the database is a file."""
    if connection.vendor != "sqlite":
        raise CommandError(
            f"The database is {connection.display_name}: back it up with its own tools, pg_dump or a WAL archive. "
            f"{GUIDE} has the steps, before and after."
        )
