"""Open circuits in the coordination store, for all processes: written when a circuit opens, closes or opens again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from gateway.coordination.store import CoordinationStore
from proxy.vendors.circuit import CircuitState

# "Half open" is shown for so long without a call that tries. A running process keeps the state until a call tries; the
# state of a process that has ended must expire.
_HALF_OPEN_SHOWN_S = 3600


@dataclass(frozen=True, slots=True)
class SharedCircuit:
    """A circuit that is open or half open."""

    failures: int  # in a row
    since: datetime
    until: datetime  # when the next trial may run

    def state(self, now: datetime) -> CircuitState:
        return CircuitState.OPEN if now < self.until else CircuitState.HALF_OPEN


_decoder = msgspec.json.Decoder(SharedCircuit)


def vendor_wide(vendor: str) -> str:
    """The circuit of the catalog's address of a vendor: shared by all organizations."""
    return vendor


def of_credential(vendor: str, credential_id: UUID) -> str:
    """The circuit of one credential, which may name an address of its own."""
    return f"{vendor}:{credential_id}"


def vendor_of(name: str) -> str:
    return name.partition(":")[0]


def publish(store: CoordinationStore, name: str, circuit: SharedCircuit | None) -> None:
    """Write the circuit; None when it is closed. Raises: CoordinationUnavailable."""
    if circuit is None:
        store.put_health(_key(name), b"null", 1)
    else:
        ttl_s = math.ceil((circuit.until - circuit.since).total_seconds() + _HALF_OPEN_SHOWN_S)
        store.put_health(_key(name), msgspec.json.encode(circuit), ttl_s)


def published(store: CoordinationStore, names: Iterable[str]) -> Mapping[str, SharedCircuit]:
    """Those of `names` that are open or half open; closed ones are left out."""
    by_key = {_key(name): name for name in names}
    found: dict[str, SharedCircuit] = {}
    for key, raw in store.health(list(by_key)).items():
        try:
            found[by_key[key]] = _decoder.decode(raw)
        except msgspec.ValidationError:  # closed, or written by another version of the service
            continue
    return found


def _key(name: str) -> str:
    return f"circuit:{name}"
