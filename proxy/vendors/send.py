"""Sends a request; retries once on a new session if the vendor did not know the old one. Spec: D104

A write is retried only if the vendor states exactly that: a text that mentions sessions may come from the tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.circuits import Trials
from proxy.vendors.destination import Destination
from proxy.vendors.errors import OtherEra, StaleSession
from proxy.vendors.pool import SessionPool
from proxy.vendors.session import VendorSession
from proxy.vendors.tool_request import ToolRequest


async def send_request(
    pool: SessionPool,
    destination: Destination,
    method: str,
    params: Mapping[str, Any],
    *,
    deadline: float,
    timing: Timing | None = None,
    relay: ProgressRelay | None = None,
    is_repeatable: bool = True,
    tool: ToolRequest | None = None,
) -> replies.VendorResult | replies.RpcError:
    """The vendor's answer; its progress goes to `relay`. Raises: VendorProblem.

    `is_repeatable`: the request changes nothing at the vendor, and is retried on a mere sign of a lost session. `tool`:
    of a `tools/call`, for vendors of the modern revision.
    Spec: §4.14 (3)-(5) · D104 · docs/decisions/0008, 0023
    """
    timing = timing or Timing()
    circuits, compartment = pool.circuits, pool.bulkhead.compartment(destination.key)
    if not compartment.try_acquire():
        circuits.check(destination)  # an open circuit refuses before the wait
        began_s = asyncio.get_running_loop().time()
        with timing.session:
            await compartment.acquire(deadline)
        deadline += asyncio.get_running_loop().time() - began_s  # the wait is ours: the vendor keeps its whole timeout
    trials: Trials = ()
    try:
        trials = circuits.enter(destination)
        return await _send_request(pool, destination, method, params, deadline, timing, relay, is_repeatable, tool)
    finally:
        compartment.release()
        if trials:
            circuits.exit(trials)


async def open_session(pool: SessionPool, destination: Destination, *, deadline: float) -> VendorSession:
    """The session, opened if there is none, within the same bounds as a request. Raises: VendorProblem."""
    compartment = pool.bulkhead.compartment(destination.key)
    if not compartment.try_acquire():
        pool.circuits.check(destination)
        await compartment.acquire(deadline)
    trials: Trials = ()
    try:
        trials = pool.circuits.enter(destination)
        return await pool.lease(destination, deadline=deadline)
    finally:
        compartment.release()
        if trials:
            pool.circuits.exit(trials)


async def _send_request(
    pool: SessionPool,
    destination: Destination,
    method: str,
    params: Mapping[str, Any],
    deadline: float,
    timing: Timing,
    relay: ProgressRelay | None,
    is_repeatable: bool,
    tool: ToolRequest | None,
) -> replies.VendorResult | replies.RpcError:
    refusal: replies.RpcError | None = None
    for last_try in (False, True):
        with timing.session:
            session = await pool.lease(destination, deadline=deadline)
        if refusal is not None and not session.is_modern:
            return refusal
        if tool is not None and tool.is_retry and not session.is_modern:
            raise errors.bad_response("it asked in a protocol version that the vendor no longer supports")
        try:
            with timing.vendor:
                answer = await session.request(method, params, deadline=deadline, relay=relay, timing=timing, tool=tool)
        except StaleSession as stale:
            pool.evict(destination, session, is_of_other_era=isinstance(stale, OtherEra))
            if last_try or not (stale.is_certain or is_repeatable):
                return _final_error(stale)
            if isinstance(stale, OtherEra) and not session.is_modern and not is_repeatable:
                # In the earlier revisions the code may be the vendor's own, after the tool ran: only in the other one.
                refusal = stale.error
        except errors.VendorProblem as problem:
            pool.circuits.record(destination, problem.evidence)
            raise
        else:
            pool.circuits.record(destination, errors.Evidence.RESPONDED)
            return answer
    raise AssertionError("unreachable")


def _final_error(stale: StaleSession) -> replies.RpcError:
    """The vendor's own error, when the request is not retried. Raises: VendorProblem without one."""
    if isinstance(stale, OtherEra):
        raise errors.no_common_version() from stale
    if stale.is_certain:
        raise errors.unavailable("The vendor drops its sessions immediately.", errors.Evidence.RESPONDED) from stale
    if stale.error is None:
        raise errors.bad_response(f"HTTP {stale.status}") from stale
    return stale.error
