"""The interface to the database of call records: one connection, one statement and one transaction a batch.

One thread uses it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.conf import settings
from django.db import connections
from django.db.utils import load_backend

from audit.call_record import CallRecord
from gateway.lib.session_timeouts import with_timeouts


class Sink(Protocol):
    """A place that keeps records. Any other exception than RecordRefused means: broken, close it and open another.

    `gather_s`: how long a commit may wait for more records while several come at a time; 0 where commits are cheap.
    """

    gather_s: float

    def commit(self, records: Sequence[CallRecord]) -> None:
        """Every record is durable, none twice; ids differ within the batch. Raises: RecordRefused."""

    def probe(self) -> None:
        """Return if a record could be committed now, as far as that can be known without one."""

    def close(self) -> None:
        """The connection is given back; never raises."""


def open_sink(database: Mapping[str, Any] | None = None) -> Sink:
    """A connected sink on `database` (an entry of DATABASES), by default on the service's own.

    Its connection is its own: taken from the pool it would be one less for requests, all the time.
    Raises: django.db.Error when the database cannot be reached.
    """
    config: dict[str, Any] = copy.deepcopy(dict(database or connections["default"].settings_dict))
    if config["ENGINE"] == "django.db.backends.postgresql":
        from audit.postgresql_sink import PostgreSQLSink
        from gateway.lib.bounded_connection import BoundedWrapper

        config = with_timeouts(config, settings.HOT_PATH_TIMEOUTS)
        config["OPTIONS"].pop("pool", None)
        config["OPTIONS"]["application_name"] = "gateway-audit"
        server = BoundedWrapper(config, "default")
        server.ensure_connection()
        return PostgreSQLSink(server)
    from audit.sqlite_sink import SQLiteSink

    config["OPTIONS"]["timeout"] = 1  # the writer itself tries again, and looks at its deadlines in between
    file = load_backend(config["ENGINE"]).DatabaseWrapper(config, "default")
    file.ensure_connection()
    return SQLiteSink(file)
