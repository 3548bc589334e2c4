"""Calls of a signed-in person from a page: the pipeline of every call, without a token.   docs/decisions/0071

They count, are decided, limited and recorded as a call over MCP. `client_name` names the part of the pages. Spec: D155
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import async_to_sync

from audit.call_status import CallSource
from audit.pending_record import AuditUnavailable
from gateway.catalog.vendor import Vendor
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.errors import DomainError, Forbidden
from gateway.lib.sentences import sentence
from oauth_ext.bearer import InvalidBearer
from proxy import runtime
from proxy.bearer_loader import epoch_names
from proxy.caller import Caller, OwnRights
from proxy.caller_cache import CallerCache
from proxy.caller_rows import organization_access, principal_of
from proxy.calls.call_tool import ToolCall, call_tool
from proxy.calls.decide import may_call
from proxy.control_plane.assumed_callers import identity_of_person
from proxy.control_plane.vendor_request_limiter import vendor_requests
from proxy.hot_path_database import DatabaseUnavailable
from proxy.outcomes import CacheStatus, Denied, Outcome
from proxy.request_context import RequestContext
from proxy.timing import Timing

TOOL_RUNNER = "Tool runner"
# The rights are read for each call, so they need to hold for its length only.
_HOLDS_S = 600.0
T = TypeVar("T")


class CallsUnavailable(DomainError):
    """A store that a call needs is away. Nothing was sent to the vendor, or its answer could not be recorded."""

    code, status = "unavailable", 503
    message = sentence("The gateway can’t run calls right now. Try again in a moment.")


@dataclass(frozen=True, slots=True)
class PageCaller:
    """The person of a page request, in the page's organization."""

    user_id: uuid.UUID
    org_id: uuid.UUID
    client_name: str
    request_id: str
    ip_address: str


@dataclass(frozen=True, slots=True)
class RanTool:
    """The outcome of a run, with its cache state and its times in milliseconds."""

    outcome: Outcome
    cache: CacheStatus
    auth_ms: int
    session_ms: int
    vendor_ms: int
    total_ms: int


def run_tool(by: PageCaller, vendor: Vendor, tool: str, arguments: Mapping[str, Any], *, request_bytes: int) -> RanTool:
    """Calls the tool with this exposed name. The row is committed before this returns.

    Raises: as `in_pipeline`.
    """
    call = ToolCall(tool, arguments, vendor=vendor)
    return in_pipeline(by, partial(_run, call, request_bytes))


def why_refused(by: PageCaller, vendor: Vendor, tool: str, *, is_read_only: bool) -> Denied | None:
    """Why the person may not call the tool, with this name of the vendor's. Counts and records nothing.

    Raises: Forbidden for a person who is no longer a member.
    """
    try:
        principal = principal_of(identity_of_person(by.user_id, by.org_id, client_name=by.client_name))
        organization = organization_access(by.org_id)
    except InvalidBearer as fault:
        raise Forbidden(fault.reason) from fault
    return may_call(principal, organization, vendor, tool, is_read_only=is_read_only)


async def _run(call: ToolCall, request_bytes: int, context: RequestContext) -> RanTool:
    context.request_bytes = request_bytes
    outcome = await call_tool(context, call)
    times = context.timing
    return RanTool(outcome, context.cache, times.auth.ms, times.session.ms, times.vendor.ms, total_ms=times.total_ms())


def in_pipeline(by: PageCaller, work: Callable[[RequestContext], Awaitable[T]]) -> T:
    """Runs `work` on the process's own event loop, where the connections to vendors live.

    Raises: TooManyVendorRequests; Forbidden for a person who is no longer a member; CallsUnavailable.
    """
    # The page's thread waits, so one organization may hold few of them.
    with vendor_requests.slot(by.org_id):
        try:
            return async_to_sync(_with_context)(by, work)
        except InvalidBearer as fault:
            raise Forbidden(fault.reason) from fault
        except (DatabaseUnavailable, AuditUnavailable, CoordinationUnavailable) as fault:
            raise CallsUnavailable from fault


async def _with_context(by: PageCaller, work: Callable[[RequestContext], Awaitable[T]]) -> T:
    is_served = runtime.existing() is not None
    try:
        return await work(await _context(by))
    finally:
        # Outside a web process the loop ends with this call, and so does what lives on it.
        if not is_served:
            await runtime.stop()


async def _context(by: PageCaller) -> RequestContext:
    live, timing = runtime.current(), Timing()
    callers = _SignedInCaller(live.caller_cache, by)
    with timing.auth:
        caller = await callers.load()
    return RequestContext(
        runtime=live,
        source=CallSource.MCP,
        bearer="",
        caller=caller,
        timing=timing,
        request_id=by.request_id,
        ip_address=by.ip_address,
        request_bytes=0,
        client=_Waits(),
        callers=callers,
    )


class _Waits:
    """A page waits for its call to the end."""

    client_disconnected = False


class _SignedInCaller:
    """The person's rights, read for this call. No other call uses them."""

    def __init__(self, cache: CallerCache, by: PageCaller) -> None:
        self._cache, self._by = cache, by
        self._names = epoch_names(str(by.user_id), by.org_id)

    async def load(self) -> Caller:
        """Raises: InvalidBearer for a person who is no longer a member; DatabaseUnavailable."""
        return await self._cache.assumed(self._names, self._read_own)

    async def revalidated(self, bearer: str, caller: Caller, current: tuple[str, ...] | None) -> Caller:
        """`caller` if the epochs say that it is up to date, otherwise its rows as they are now. Raises: as `load`."""
        return caller if current is not None and current == caller.epochs else await self.load()

    def _read_own(self) -> OwnRights:
        by, loaded_at_s = self._by, time.monotonic()
        identity = identity_of_person(by.user_id, by.org_id, client_name=by.client_name)
        return OwnRights(
            principal=principal_of(identity),
            key_pk=None,
            audiences=frozenset(),
            expires_at_s=time.time() + _HOLDS_S,
            loaded_at_s=loaded_at_s,
            spread=0.0,
        )
