"""The door to the engine that makes call records durable: PostgreSQL, or the SQLite file of the embedded default."""

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
    """One connection to an engine, used by one thread or one event loop at a time. Every engine promises:

    * Durable: a record whose commit has returned outlives the kill of this process and of the engine's.
    * Whole: a batch is stored as a whole, or RecordRefused is raised and nothing of it is stored.
    * Once: an id is one row, however often it comes. An outcome completes its intent. A final row never changes, and no
      row of another organization does.
    * In order: the final rows of a commit come before those of each later commit, in the log's stream.
    * Fail and repeat: any exception but RecordRefused means a broken connection. The batch may be stored or not. The
      writer commits it again through a new connection.

    Batches, deadlines and outages are the writer's. tests/faults/test_audit_engines.py holds every engine to all of it.
    """

    # Seconds that a commit may wait for more records under load; 0 where commits are cheap.
    gather_s: float

    def commit(self, records: Sequence[CallRecord]) -> None:
        """Ids differ within a batch. Blocks. Raises: RecordRefused."""

    def probe(self) -> None:
        """Tries a commit's lock or statement without a record. Raises if that fails; a full disk does not show."""

    def for_loop(self) -> LoopConnection | None:
        """This connection as an event loop uses it; None where only a thread can. The promises stay the same."""

    def close(self) -> None:
        """Never raises."""


class LoopConnection(Protocol):
    """A connection that an event loop can wait for, one batch at a time."""

    def fileno(self) -> int:
        """The socket."""

    def start_commit(self, records: Sequence[CallRecord]) -> bool:
        """Returns False when `flush` must send the rest. Raises: like `commit`."""

    def flush(self) -> bool:
        """Returns True when nothing is left to send."""

    def poll_commit(self) -> bool:
        """Returns True once the batch is durable. Raises: like `commit`."""

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
