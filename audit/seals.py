"""Chains of digests over the logs, one for each organization and log, sealed in batches from the stream.

    seal 1: digest = H(zeros, facts, H(entries))  <--  seal 2: digest = H(digest of 1, facts, H(entries))  <--  ...

An entry is a row's id and the digest of its values. A changed row needs every later seal to be written again, and the
last seal stands in the service's log as well. docs/decisions/0043
"""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import structlog
from django.db import transaction

from audit.models import AdminAuditEntry, RequestAuditEntry, Seal
from audit.stream import Entry, Log, place_of_row, take
from gateway.lib import clock
from gateway.lib.rows import grouped

CURSOR = "seals"
BATCH_ROWS = 5_000
DIGEST_BYTES = 16  # of a row in its seal's entries
FIRST = bytes(32)  # before the first seal
_ID_BYTES = 16
ENTRY_BYTES = _ID_BYTES + DIGEST_BYTES
VERSION = 2
_OF_REQUESTS = tuple(
    "id timestamp org_id user_id user_label vendor tool source status error_code duration_ms vendor_ms"
    " credential_scope credential_name cached client_id client_name ip_address request_id request_bytes"
    " response_bytes count position".split()
)
_OF_CHANGES = tuple(
    "id timestamp org_id event_type actor_id actor_label target_id target_label metadata ip_address request_id"
    " position".split()
)
# The columns of each version. A new column of a log makes a new version; the ones that there are stay as they are.
_COLUMNS: dict[int, dict[type[Any], tuple[str, ...]]] = {
    1: {RequestAuditEntry: _OF_REQUESTS, AdminAuditEntry: _OF_CHANGES},
    2: {RequestAuditEntry: (*_OF_REQUESTS, "kind", "item"), AdminAuditEntry: _OF_CHANGES},
}
_encoder = msgspec.json.Encoder(order="deterministic")
logger = structlog.get_logger(__name__)


def row_digest(row: Entry, version: int = VERSION) -> bytes:
    """Returns 16 bytes of SHA-256 over the row's values as JSON, in the order of the version's columns."""
    values = [getattr(row, column) for column in _COLUMNS[version][type(row)]]
    return hashlib.sha256(_encoder.encode(values)).digest()[:DIGEST_BYTES]


def entries_of(rows: Iterable[Entry]) -> bytes:
    return b"".join(row.id.bytes + row_digest(row) for row in rows)


def parse_entries(entries: bytes) -> Iterator[tuple[uuid.UUID, bytes]]:
    """Returns the id and the digest of each row."""
    for start in range(0, len(entries), ENTRY_BYTES):
        entry = entries[start : start + ENTRY_BYTES]
        yield uuid.UUID(bytes=entry[:_ID_BYTES]), entry[_ID_BYTES:]


def seal_digest(seal: Seal, before: bytes) -> bytes:
    """`before` is the digest of the seal before, FIRST for none."""
    made_at = (seal.made_at - clock.EPOCH) // timedelta(microseconds=1)
    facts = struct.pack(">hqqiq", seal.version, seal.number, seal.position, seal.rows, made_at)
    parts = (before, seal.org_id.bytes, str(seal.log).encode(), facts, seal.row_id.bytes, bytes(seal.entries_digest))
    return hashlib.sha256(b"".join(parts)).digest()


def seal_next(log: Log, limit: int = BATCH_ROWS) -> int:
    """Seals the next rows of all organizations. Returns their number; fewer than `limit` means that none is left."""
    with transaction.atomic():
        batch = take(CURSOR, log, limit)
        if batch is None or not batch.rows:
            return 0
        by_org = grouped((row.org_id, row) for row in batch.rows)
        last = {seal.org_id: seal for seal in last_seals(log, by_org)}
        seals = [_seal(log, org_id, rows, last.get(org_id)) for org_id, rows in by_org.items()]
        Seal.objects.bulk_create(seals)
    for seal in seals:
        # A change of the database leaves this copy as it is.
        logger.info(
            "audit.sealed", org_id=str(seal.org_id), log=log.value, seal=f"{seal.number}:{bytes(seal.digest).hex()}"
        )
    return len(batch.rows)


def last_seals(log: Log, org_ids: Iterable[uuid.UUID]) -> list[Seal]:
    # One step along the index for each organization.
    chains = (Seal.objects.filter(org_id=org_id, log=log).order_by("-number") for org_id in org_ids)
    return [seal for chain in chains if (seal := chain.defer("entries").first()) is not None]


def _seal(log: Log, org_id: uuid.UUID, rows: Sequence[Entry], last: Seal | None) -> Seal:
    entries = entries_of(rows)
    through = place_of_row(rows[-1])
    seal = Seal(
        org_id=org_id,
        log=log,
        number=last.number + 1 if last else 1,
        version=VERSION,
        position=through.position,
        row_id=through.id,
        rows=len(rows),
        entries=entries,
        entries_digest=hashlib.sha256(entries).digest(),
        made_at=clock.now(),
    )
    seal.digest = seal_digest(seal, bytes(last.digest) if last else FIRST)
    return seal
