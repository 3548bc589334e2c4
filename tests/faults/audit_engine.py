"""The engines behind audit.audit_connection, each with a database of its own and each way to its commit."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audit.audit_connection import AuditConnection, open_audit_connection
from audit.call_record import CallRecord
from audit.writer import AuditWriter
from tests.faults.scratch_database import BACKENDS, ScratchDatabase

ORGS = [uuid.UUID("11111111-1111-4111-8111-111111111111"), uuid.UUID("22222222-2222-4222-8222-222222222222")]
THREAD_ONLY = "GATEWAY_TEST_THREAD_ONLY"
# On PostgreSQL the event loop commits, and after a fault the thread: both keep the promises.
THREAD = "postgresql by thread"
ENGINES = [*BACKENDS, *([THREAD] if "postgresql" in BACKENDS else [])]


def new_record(request_id: str = "", **changes: Any) -> CallRecord:
    facts = {
        "org_id": ORGS[time.time_ns() % 2],
        "user_id": "user-1",
        "user_label": "Ana",
        "vendor": "acme",
        "tool": "acme_list",
        "source": "mcp",
        "status": "success",
        "request_id": request_id or uuid.uuid4().hex,
    }
    return CallRecord(**{**facts, **changes})


class ThreadConnection:
    """A connection that no event loop gets."""

    def __init__(self, connection: AuditConnection) -> None:
        self._connection = connection
        self.gather_s = connection.gather_s

    def commit(self, records: Sequence[CallRecord]) -> None:
        self._connection.commit(records)

    def probe(self) -> None:
        self._connection.probe()

    def for_loop(self) -> None:
        return None

    def close(self) -> None:
        self._connection.close()


def open_connection(database: Mapping[str, Any] | None = None, *, is_thread_only: bool) -> AuditConnection:
    opened = open_audit_connection(database)
    return ThreadConnection(opened) if is_thread_only else opened


@dataclass(frozen=True)
class Engine:
    """One way to one database; `name` is of ENGINES."""

    name: str
    database: ScratchDatabase

    @property
    def uses_loop(self) -> bool:
        return self.name == "postgresql"

    def open(self) -> AuditConnection:
        return open_connection(self.database.config, is_thread_only=self.name == THREAD)

    def writer(self, **options: Any) -> AuditWriter:
        return AuditWriter(open_connection=self.open, **options)

    def environment(self) -> dict[str, str]:
        """For a program whose writer is to use this engine."""
        return {**self.database.environment(), THREAD_ONLY: "1" if self.name == THREAD else ""}


def open_in_program() -> AuditConnection:
    """The connection of a program that was started with `Engine.environment`."""
    return open_connection(is_thread_only=bool(os.environ[THREAD_ONLY]))
