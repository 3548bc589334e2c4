"""The journal of ends: one JSON line for each revoked thing, written after the commit. docs/decisions/0082

{"at": "2026-05-01T10:00:00.000Z", "kind": "agent_key", "id": "…"}

A line names things by their ids. It holds no secret and no hash of one. The file is opened for each write, so an
operator may move it away at any time.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from gateway.lib import clock, secrets

log = structlog.get_logger(__name__)
LOGGED_ENDS = 100  # ids in the log when the file takes none
LOCK_WAIT_S = 2.0  # for a writer that hangs with the lock


class EndKind(StrEnum):
    ACCESS_TOKEN = "access_token"  # noqa: S105 - of the client credentials grant; `id` is the row's number
    AGENT_KEY = "agent_key"
    CLIENT_SECRET = "client_secret"  # noqa: S105 - of the service client `id`
    CREDENTIAL = "credential"
    INVITATION = "invitation"
    MANAGEMENT_TOKEN = "management_token"  # noqa: S105
    MAIL_DOMAIN = "mail_domain"
    MEMBERSHIP = "membership"  # of the person `id` in `org`
    ORGANIZATION = "organization"
    PERSON = "person"
    PERSON_SESSIONS = "person_sessions"  # all of the person `id`
    SERVICE_CLIENT = "service_client"
    SESSION = "session"
    SUPPORT_ACCESS = "support_access"  # of the person `id`
    TOKEN_FAMILY = "token_family"  # noqa: S105
    TRUSTED_ISSUER = "trusted_issuer"


_NUMBERED = {EndKind.ACCESS_TOKEN, EndKind.SESSION}  # their ids are no UUIDs


@dataclass(frozen=True, slots=True)
class End:
    """`until`: the thing works until then, beside its successor. None: it ended at once.

    `successor_at`: the time of the successor's row, where both have the same id.
    """

    kind: EndKind
    id: str
    org: str = ""
    until: datetime | None = None
    successor_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WrittenEnd:
    at: datetime
    end: End


class UnreadableJournal(Exception):
    """The file cannot be read, or a line is none of ours. The text names the line."""


class _Batch:
    """The ends of one transaction, or of one savepoint in it: one write and one wait for the disk."""

    def __init__(self, savepoints: Sequence[str | None]) -> None:
        self.savepoints = list(savepoints)
        self.ends: list[End] = []

    def __call__(self) -> None:
        write(self.ends)


def session_id(stored_key: str) -> str:
    """How the journal names a session: neither its cookie nor its row's key can be found from it."""
    return secrets.sha256(f"revocation journal {stored_key}").hex()[:32]


def note(end: End) -> None:
    """Write the end when the open transaction commits, or at once without one. A rollback writes nothing."""
    if settings.REVOCATION_JOURNAL is None:
        return
    connection = transaction.get_connection()
    if not connection.in_atomic_block:
        write([end])
        return
    # Django drops the hooks of a savepoint that is rolled back: ends share a hook only with those of the same one.
    _, last, _ = connection.run_on_commit[-1] if connection.run_on_commit else (None, None, None)
    if not isinstance(last, _Batch) or last.savepoints != connection.savepoint_ids:
        last = _Batch(connection.savepoint_ids)
        # robust: the change is committed, so a full disk must not fail it.
        transaction.on_commit(last, robust=True)
    last.ends.append(end)


def write(ends: Sequence[End]) -> None:
    """Append and flush to the disk. A failure is logged with the ids, and raises nothing."""
    path: Path | None = settings.REVOCATION_JOURNAL
    if path is None:
        return
    now = clock.rfc3339(clock.now())
    try:
        _append(path, b"".join(_line(end, now) for end in ends))
    except OSError as fault:
        log.error(
            "revocation_journal_not_written",
            path=str(path),
            fault=fault.strerror,
            ends=[{"kind": end.kind.value, "id": end.id, "org": end.org} for end in ends[:LOGGED_ENDS]],
            more=max(0, len(ends) - LOGGED_ENDS),
        )


def _append(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor)
        end = os.lseek(descriptor, 0, os.SEEK_END)
        # A writer that was killed may have left half a line.
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            data = b"\n" + data
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Whole lines are appended without the lock too; it keeps half a line of a killed writer apart from the next."""
    give_up_at_s = time.monotonic() + LOCK_WAIT_S
    while time.monotonic() < give_up_at_s:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)
        else:
            return


def _line(end: End, at: str) -> bytes:
    facts: dict[str, str] = {"at": at, "kind": end.kind.value, "id": end.id}
    if end.org:
        facts["org"] = end.org
    for name, moment in (("until", end.until), ("successor_at", end.successor_at)):
        if moment is not None:
            facts[name] = clock.rfc3339(moment)
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n"


def read(path: Path, since: datetime, *, skipped: Callable[[int], None]) -> Iterator[WrittenEnd]:
    """The ends written at `since` or later, in the order of the file. Raises: UnreadableJournal.

    `skipped` gets the number of each line that a killed writer left unfinished.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    facts = json.loads(line)
                except ValueError:
                    skipped(number)
                    continue
                written = _parsed(facts, number)
                if written.at >= since:
                    yield written
    except OSError as fault:
        raise UnreadableJournal(f"{path} cannot be read ({fault.strerror}).") from None


def _parsed(facts: Any, number: int) -> WrittenEnd:
    try:
        until, successor_at = (_moment(facts[name]) if name in facts else None for name in ("until", "successor_at"))
        if facts["kind"] not in _NUMBERED:
            uuid.UUID(facts["id"])
        if facts.get("org"):
            uuid.UUID(facts["org"])
        end = End(EndKind(facts["kind"]), str(facts["id"]), str(facts.get("org", "")), until, successor_at)
        return WrittenEnd(_moment(facts["at"]), end)
    except (KeyError, TypeError, ValueError, AttributeError):
        # A line of a newer release would be an end that stays undone.
        raise UnreadableJournal(f"line {number} is not an entry that this release knows.") from None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.astimezone(UTC)
