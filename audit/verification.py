"""Comparison of the logs with their seals: the first row that was changed, removed or inserted, and a missing end."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Max, QuerySet

from audit.models import PrunedLog, Seal
from audit.organizations import organizations_of
from audit.seals import CURSOR, FIRST, parse_entries, row_digest, seal_digest
from audit.stream import Entry, Log, Place, beyond, final_rows, place_of, place_of_row, place_reached
from gateway.lib import clock
from gateway.lib.ids import NO_ID, first_log_id_at

READ_AT_ONCE = 5_000  # rows


@dataclass(frozen=True, slots=True)
class Finding:
    """The first fault of one organization's chain; `row_id` is None when it is a seal's."""

    org_id: uuid.UUID
    log: Log
    fault: str
    row_id: uuid.UUID | None = None


@dataclass(slots=True)
class Verification:
    rows: int = 0  # that equal their seals
    seals: int = 0
    expired: int = 0  # sealed rows that retention has removed
    unsealed: int = 0  # newer than the last seal
    findings: list[Finding] = field(default_factory=list)


class _Broken(Exception):
    def __init__(self, fault: str, row_id: uuid.UUID | None = None) -> None:
        super().__init__(fault)
        self.fault, self.row_id = fault, row_id


def verify(
    log: Log,
    *,
    org_id: uuid.UUID | None = None,
    since: datetime | None = None,
    expected: tuple[int, bytes] | None = None,
) -> Verification:
    """Compares every chain, or that of one organization, from the first seal after `since`.

    `expected` is the number and digest of a seal of `org_id` that was noted elsewhere.
    """
    result = Verification()
    # Read first: the seals of these rows are there when the seals are read.
    sealed_through = place_of(CURSOR, log)
    for each in [org_id] if org_id else _organizations(log):
        try:
            _Chain(each, log, since, result).verify(sealed_through, expected)
        except _Broken as broken:
            result.findings.append(Finding(each, log, broken.fault, broken.row_id))
    return result


def _organizations(log: Log) -> list[uuid.UUID]:
    """Those with seals, and those with rows: a chain may have been removed as a whole."""
    sealed = Seal.objects.filter(log=log).order_by("org_id").values_list("org_id", flat=True).distinct()
    return sorted({*sealed, *organizations_of(final_rows(log).model)})


class _Chain:
    """One organization's seals and rows in one log, read side by side in the order of the stream."""

    def __init__(self, org_id: uuid.UUID, log: Log, since: datetime | None, result: Verification) -> None:
        self._result = result
        self._chain = Seal.objects.filter(org_id=org_id, log=log).order_by("number")
        self._log = log
        self._rows: QuerySet[Any] = final_rows(log).filter(org_id=org_id)
        self._expired_before = first_log_id_at(_pruned_before(log))
        # Rows are read after the seals: those of a later seal are of no concern.
        last = self._chain.aggregate(number=Max("number"), position=Max("position"))
        self._last_number, self._last_position = last["number"] or 0, last["position"] or 0
        self._first_number = self._first_since(since) if since else 1

    def verify(self, sealed_through: Place, expected: tuple[int, bytes] | None) -> None:
        """Raises: _Broken at the first fault."""
        digest, number, place = FIRST, 0, Place(0, NO_ID)
        # The entries of seals before the first one are not read, but their digests are: a seal's time may be forged.
        for seal in self._chain.filter(number__lt=self._first_number).defer("entries").iterator():
            number += 1
            digest, place = self._check_seal(seal, number, digest, expected), place_reached(seal)
        # A reader without an end would fetch thousands of unsealed rows of each organization.
        through = max(sealed_through.position, self._last_position)
        rows = _Rows(self._rows.filter(beyond(place, self._log), position__lte=through))
        later = self._chain.filter(number__gte=self._first_number, number__lte=self._last_number)
        for seal in later.iterator(chunk_size=50):
            number += 1
            digest, place = self._check_seal(seal, number, digest, expected), place_reached(seal)
            self._check_rows(seal, rows)
        if expected and expected[0] > number:
            last = f"the last seal is {number}" if number else "there is no seal"
            raise _Broken(f"the end is missing: {last}, and {expected[0]} was noted")
        row = rows.peek()
        if row is not None and place_of_row(row) <= sealed_through:
            raise _Broken("a row is in no seal: it was inserted, or its seal was removed", row.id)
        self._result.unsealed += self._rows.filter(beyond(place, self._log)).count()

    def _first_since(self, since: datetime) -> int:
        first = self._chain.filter(made_at__gte=since).values_list("number", flat=True).first()
        return self._last_number + 1 if first is None else first

    def _check_seal(self, seal: Seal, number: int, before: bytes, expected: tuple[int, bytes] | None) -> bytes:
        if seal.number != number:
            raise _Broken(f"seal {number} is missing")
        digest = seal_digest(seal, before)
        if digest != bytes(seal.digest):
            raise _Broken(f"seal {number} was changed")
        if expected and expected[0] == number and expected[1] != digest:
            raise _Broken(f"seal {number} is another one than the one that was noted")
        return digest

    def _check_rows(self, seal: Seal, rows: _Rows) -> None:
        if hashlib.sha256(bytes(seal.entries)).digest() != bytes(seal.entries_digest):
            raise _Broken(f"the entries of seal {seal.number} were changed")
        self._result.seals += 1
        for row_id, digest in parse_entries(bytes(seal.entries)):
            row = rows.peek()
            if row is None or row.id != row_id:
                self._explain_absence(row_id, digest, row, seal.version)
                continue
            if row_digest(row, seal.version) != digest:
                raise _Broken("a row was changed", row_id)
            rows.skip()
            self._result.rows += 1
        row = rows.peek()
        if row is not None and place_of_row(row) <= place_reached(seal):
            raise _Broken(*_out_of_place(self._chain, row))

    def _explain_absence(self, row_id: uuid.UUID, digest: bytes, found: Entry | None, version: int) -> None:
        if row_id < self._expired_before:
            self._result.expired += 1
            return
        row = self._rows.filter(id=row_id).first()
        if row is None:
            raise _Broken("a row was removed", row_id)
        if found is None or row_digest(row, version) != digest:
            raise _Broken("a row was changed", row_id)  # its position, among others
        raise _Broken(*_out_of_place(self._chain, found))


def _pruned_before(log: Log) -> datetime:
    """Only rows of the request log expire, and none that is younger than the setting."""
    pruned = PrunedLog.objects.filter(log=log).first() if log is Log.REQUESTS else None
    if pruned is None:
        return clock.EPOCH
    return min(pruned.before, clock.now() - timedelta(days=settings.AUDIT_RETENTION_DAYS))


def _out_of_place(seals: QuerySet[Seal], found: Entry) -> tuple[str, uuid.UUID]:
    """A row that comes before its turn was moved here if it is sealed, else it is a new one."""
    for entries in seals.values_list("entries", flat=True).iterator(chunk_size=50):
        if any(row_id == found.id for row_id, _ in parse_entries(bytes(entries))):
            return "a row was changed", found.id
    return "a row was inserted", found.id


class _Rows:
    """Final rows after a place, in order, with a look at the next one."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        ordered = rows.order_by("position", "id")
        self._iterator: Iterator[Entry] = ordered.iterator(chunk_size=READ_AT_ONCE)
        self._next: Entry | None = next(self._iterator, None)

    def peek(self) -> Entry | None:
        return self._next

    def skip(self) -> None:
        self._next = next(self._iterator, None)
