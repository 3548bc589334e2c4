"""One request on the hot path: who calls, from where, since when. Routes make one and pass it down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from audit.call_status import CallSource
from gateway.coordination.store import Admission
from proxy.access import Caller
from proxy.outcomes import CacheStatus
from proxy.runtime import Runtime
from proxy.timing import Timing


class Client(Protocol):
    """Who is told that nobody waits any more: the request, as its handler made it."""

    client_left: bool


@dataclass(slots=True)
class Exchange:
    """`caller` is replaced when admission finds that it changed; `admission` is the last answer of the limiter.

    `cache` is what the result cache did for the call at hand; `cache_epoch` a name and value that admission read along.
    """

    runtime: Runtime
    source: CallSource
    bearer: str
    caller: Caller
    timing: Timing
    request_id: str
    ip_address: str
    request_bytes: int
    client: Client
    admission: Admission | None = None
    cache: CacheStatus = CacheStatus.BYPASS
    cache_epoch: tuple[str, str] | None = None

    @property
    def client_left(self) -> bool:
        """The client closed its connection; nobody is answered."""
        return self.client.client_left

    def __repr__(self) -> str:
        return f"Exchange({self.request_id!r})"  # the bearer stays out of tracebacks
