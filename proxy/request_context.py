"""State of one request on the hot path. Routes create it and pass it down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from audit.call_status import CallSource
from gateway.coordination.store import Admission
from proxy.caller import Caller
from proxy.outcomes import CacheStatus
from proxy.runtime import Runtime
from proxy.sessions.client_session import ClientSession, ClientSessionState
from proxy.timing import Timing
from proxy.trace import Trace

NEW = ClientSessionState()


class Client(Protocol):
    """The part of the HTTP request that says whether the client has disconnected."""

    client_disconnected: bool


class CallerSource(Protocol):
    """Confirms a caller or loads it again, as `CallerCache.revalidated`."""

    async def revalidated(self, bearer: str, caller: Caller, current: tuple[str, ...] | None) -> Caller: ...


@dataclass(slots=True)
class RequestContext:
    """One request, its caller and its measurements.

    `proxy.views.route` fills it in. Later steps write these fields only:

    - `caller`: the callers of `admit`, with its result
    - `admission`, `cache_epoch`, `session_state`: `admit`
    - `session`: `proxy.views.mcp_sessions`
    - `request_bytes`: `proxy.views.body`, and for each entry of a batch the batch
    - `timing`: replaced for each entry of a batch
    - `cache`, `called`: `call_tool`
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
    # The rate limiter's last result.
    admission: Admission | None = None
    # The result cache's part in the current call.
    cache: CacheStatus = CacheStatus.BYPASS
    # The last tool call of the request: its vendor (a slug of the catalog, or NO_VENDOR), its tool (empty if there is
    # none such) and its outcome.
    called: tuple[str, str, str] | None = None
    # Only where traces are exported.
    trace: Trace | None = None
    # (name, value) of an epoch that admission read in the same round trip.
    cache_epoch: tuple[str, str] | None = None
    # Of a caller of the earlier revisions that has one.
    session: ClientSession | None = None
    session_state: ClientSessionState = NEW
    # None: the runtime's cache, which knows callers by their bearer.
    callers: CallerSource | None = None

    @property
    def caller_source(self) -> CallerSource:
        return self.callers or self.runtime.caller_cache

    @property
    def client_disconnected(self) -> bool:
        return self.client.client_disconnected

    def __repr__(self) -> str:
        return f"RequestContext({self.request_id!r})"  # the bearer stays out of tracebacks
