"""Whether PostgreSQL has a connection for each one that the web processes may open. `migrate` and `check` ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import connections

from gateway.lib.session_timeouts import HAS_POOLER

# Connections of worker, shipping, beat and commands, as compose.yaml starts them, at their usual load.
OTHERS = 10
LOOP_CONNECTIONS = 2  # of each web process: for the request log, and for loading callers


@checks.register(checks.Tags.database)
def database_connections(
    app_configs: Sequence[Any] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    connection = connections["default"]
    if "default" not in (databases or ()) or connection.vendor != "postgresql":
        return []
    if connection.settings_dict.get(HAS_POOLER):  # it shares the server's connections among all
        return []
    names = ("max_connections", "superuser_reserved_connections")
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(names)])
        values = {name: int(value) for name, value in cursor.fetchall()}
    pool = connection.settings_dict["OPTIONS"]["pool"]
    each = pool["max_size"] + settings.HOT_PATH_CONNECTIONS + LOOP_CONNECTIONS
    available = values["max_connections"] - values["superuser_reserved_connections"]
    return too_few(available, processes=settings.DEPLOYMENT_PROCESSES, each=each)


def too_few(available: int, *, processes: int, each: int) -> list[checks.CheckMessage]:
    """A warning when web processes with `each` so many connections may want more than `available`."""
    needed = processes * each + OTHERS
    if needed <= available:
        return []
    return [
        checks.Warning(
            f"PostgreSQL gives {available} connections, and {processes} web processes may open {each} each,"
            f" {needed} together with worker and commands.",
            hint="Raise max_connections, lower DATABASE_POOL_SIZE, or put PgBouncer between (DATABASE_POOLER).",
            id="gateway.W002",
        )
    ]
