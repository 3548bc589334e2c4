"""The open incidents as every process knows them, for the notice above its pages: no statement of the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
import structlog

from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.status.parts import vendor_of
from gateway.status.stages import Severity

log = structlog.get_logger(__name__)
# Beside the states of the vendors in the coordination store. No vendor's slug holds this character.
_NAME = "@incidents"
TTL_S = 600  # the schedule publishes each minute; without it the notice ends by itself
KEPT_S = 5.0  # in a process


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """`stage`, `updated_at`: of the last update."""

    id: str
    title: str
    severity: str
    parts: tuple[str, ...]
    stage: str
    updated_at: datetime
    is_maintenance: bool
    starts_at: datetime

    @property
    def vendors(self) -> frozenset[str] | None:
        """The vendors whose users it touches; None if it touches everyone."""
        found = [vendor_of(part) for part in self.parts]
        return None if None in found else frozenset(filter(None, found))


_decoder = msgspec.json.Decoder(tuple[OpenIncident, ...])


def publish(store: CoordinationStore, found: Sequence[OpenIncident]) -> None:
    try:
        store.put_health(_NAME, msgspec.json.encode(found), TTL_S)
    except CoordinationUnavailable as fault:  # the schedule publishes again
        log.warning("open incidents not published", fault=fault.fault)


class KnownIncidents:
    """The knowledge of one process, at most KEPT_S old."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: tuple[CoordinationStore | None, float, tuple[OpenIncident, ...]] = (None, 0.0, ())

    def current(self, store: CoordinationStore, now: datetime) -> list[OpenIncident]:
        """Those that have begun, worst first. None while the store is away."""
        of, until, found = self._kept
        if of is not store or self._monotonic() >= until:
            found = _read(store)
            self._kept = (store, self._monotonic() + KEPT_S, found)
        begun = [each for each in found if each.starts_at <= now]
        return sorted(begun, key=lambda each: _RANK.get(each.severity, -1), reverse=True)


_RANK = {severity: rank for rank, severity in enumerate(Severity.values)}
known = KnownIncidents()


def _read(store: CoordinationStore) -> tuple[OpenIncident, ...]:
    try:
        raw = store.health([_NAME]).get(_NAME)
        return _decoder.decode(raw) if raw else ()
    except (CoordinationUnavailable, msgspec.ValidationError):  # the latter: written by another release
        return ()
