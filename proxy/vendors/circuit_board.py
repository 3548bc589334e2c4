"""Open circuits as all processes see them, in the coordination store: written when one opens, closes or opens again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from gateway.coordination.store import CoordinationStore
from proxy.vendors.circuit import CircuitState

# How long "half open" is shown while nobody calls, and so nobody tries. Processes hold it until somebody does; those
# that have ended hold nothing, and must not be shown for ever.
_AFTERWARDS_S = 3600


@dataclass(frozen=True, slots=True)
class PostedCircuit:
    """A circuit that is not closed: since when, how many failures in a row, and when the next trial may be made."""

    failures: int
    since: datetime
    until: datetime

    def state(self, now: datetime) -> CircuitState:
        """Open until the trial may be made, half open from then on."""
        return CircuitState.OPEN if now < self.until else CircuitState.HALF_OPEN


_decoder = msgspec.json.Decoder(PostedCircuit)


def vendor_wide(vendor: str) -> str:
    """The circuit of a vendor's own address, the same for every organization."""
    return vendor


def of_credential(vendor: str, credential_id: UUID) -> str:
    """The circuit of what is sent with one credential, to an address that may be its own."""
    return f"{vendor}:{credential_id}"


def post(store: CoordinationStore, name: str, circuit: PostedCircuit | None) -> None:
    """Show it to everybody; None when it is closed.

    Raises: CoordinationUnavailable.
    """
    if circuit is None:
        store.put_health(_key(name), b"null", 1)
    else:
        ttl_s = math.ceil((circuit.until - circuit.since).total_seconds() + _AFTERWARDS_S)
        store.put_health(_key(name), msgspec.json.encode(circuit), ttl_s)


def posted(store: CoordinationStore, names: Iterable[str]) -> Mapping[str, PostedCircuit]:
    """Those of `names` that are not closed."""
    asked = {_key(name): name for name in names}
    found: dict[str, PostedCircuit] = {}
    for key, raw in store.health(list(asked)).items():
        try:
            found[asked[key]] = _decoder.decode(raw)
        except msgspec.ValidationError:  # closed, or written by another version of the service
            continue
    return found


def _key(name: str) -> str:
    return f"circuit:{name}"
