"""The interface to the database of call records: one connection, used by one thread, one transaction for each batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.conf import settings
from django.db import connections
from django.db.utils import load_backend

from audit.call_record import CallRecord
from gateway.lib.session_timeouts import with_timeouts


class AuditConnection(Protocol):
    """Stores records. Any exception but RecordRefused means a broken connection: close it and open another."""

    # Seconds that a commit may wait for more records under load; 0 where commits are cheap.
    gather_s: float

    def commit(self, records: Sequence[CallRecord]) -> None:
        """Stores every record durably and once; ids differ within a batch. Raises: RecordRefused."""

    def probe(self) -> None:
        """Tries a commit's lock or statement without a record. Raises if that fails; a full disk does not show."""

    def close(self) -> None:
        """Never raises."""


def open_audit_connection(database: Mapping[str, Any] | None = None) -> AuditConnection:
    """`database` is an entry of DATABASES, by default the service's own. Raises: django.db.Error."""
    # A connection outside the pool, which would otherwise have one less for requests.
    config: dict[str, Any] = copy.deepcopy(dict(database or connections["default"].settings_dict))
    if config["ENGINE"] == "django.db.backends.postgresql":
        from audit.postgresql_connection import PostgreSQLAuditConnection
        from gateway.lib.bounded_connection import BoundedWrapper

        config = with_timeouts(config, settings.HOT_PATH_TIMEOUTS)
        config["OPTIONS"].pop("pool", None)
        config["OPTIONS"]["application_name"] = "gateway-audit"
        server = BoundedWrapper(config, "default")
        server.ensure_connection()
        return PostgreSQLAuditConnection(server)
    from audit.sqlite_connection import SQLiteAuditConnection

    config["OPTIONS"]["timeout"] = 1  # the writer retries, and checks its deadlines in between
    file = load_backend(config["ENGINE"]).DatabaseWrapper(config, "default")
    file.ensure_connection()
    return SQLiteAuditConnection(file)
