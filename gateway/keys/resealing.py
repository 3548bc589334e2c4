"""Seals rows again under the current key: in batches, each committed by itself, beside a running service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, QuerySet

from gateway.keys.current import sealing_keys
from gateway.lib.crypto import CryptoError

log = structlog.get_logger(__name__)
# Rows per transaction: bounds how long their locks are held.
BATCH_SIZE = 200


@dataclass(frozen=True, slots=True)
class SealedRows:
    """Rows with a sealed column and the id of its key. `aad` is the identity of a row, `what` the plural of its name.

    `on_change` runs in the transaction of the rows that it gets.
    """

    what: str
    rows: Callable[[], QuerySet[Any]]
    key_field: str
    sealed_field: str
    aad: Callable[[Any], bytes]
    on_change: Callable[[Sequence[Any]], None] = lambda rows: None


@dataclass(frozen=True, slots=True)
class Batch:
    """One committed batch. `failed`: the rows that do not open and stay as they are."""

    resealed: int
    failed: tuple[Any, ...]


def reseal(sealed: SealedRows, *, batch_size: int = BATCH_SIZE) -> Iterator[Batch]:
    """Each batch is committed when yielded: an interrupted run loses nothing, and the next one continues. Spec: D68"""
    after: Any = None
    while True:
        batch, after = _reseal_batch(sealed, after, batch_size)
        if after is None:
            return
        yield batch


def per_key_id(sealed: SealedRows) -> Mapping[str, int]:
    name = sealed.key_field
    rows = sealed.rows().exclude(**{name: ""}).order_by(name).values_list(name)
    return dict(rows.annotate(rows=Count("pk")))


@transaction.atomic
def _reseal_batch(sealed: SealedRows, after: Any, size: int) -> tuple[Batch, Any]:
    """The batch, and the primary key of its last row: rows that do not open are behind it and not read again."""
    keys = sealing_keys()
    left = sealed.rows().exclude(**{f"{sealed.key_field}__in": ["", keys.current_id]}).order_by("pk")
    if after is not None:
        left = left.filter(pk__gt=after)
    rows = list(left.select_for_update()[:size])
    changed, failed = [], []
    for row in rows:
        key_id, aad = getattr(row, sealed.key_field), sealed.aad(row)
        try:
            plain = keys.unwrap(key_id, bytes(getattr(row, sealed.sealed_field)), aad)
        except CryptoError as fault:
            log.error("sealed_row_unusable", rows=sealed.what, pk=str(row.pk), key_id=key_id, reason=str(fault))
            failed.append(row)
            continue
        setattr(row, sealed.sealed_field, keys.wrap(plain, aad))
        setattr(row, sealed.key_field, keys.current_id)
        changed.append(row)
    if changed:
        type(changed[0])._default_manager.bulk_update(changed, [sealed.key_field, sealed.sealed_field])
        sealed.on_change(changed)
    return Batch(len(changed), tuple(failed)), rows[-1].pk if rows else None
