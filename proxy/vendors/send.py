"""Sends a request; retries once on a new session if the vendor did not know the old one. Spec: D104

A write is retried only if the vendor states exactly that: a text that mentions sessions may come from the tool.
"""

from __future__ import annotations

import asyncio

import msgspec

from proxy.protocol import replies
from proxy.vendors import errors
from proxy.vendors.circuits import Trials
from proxy.vendors.destination import Destination
from proxy.vendors.errors import OtherEra, StaleSession
from proxy.vendors.pool import SessionPool
from proxy.vendors.resumption import RpcResponse
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.session import VendorSession


async def send_request(pool: SessionPool, destination: Destination, request: RpcRequest) -> RpcResponse:
    """The vendor's answer; its progress goes to the request's relay. Raises: VendorProblem.

    Spec: §4.14 (3)-(5) · D104 · docs/decisions/0008, 0023
    """
    circuits, compartment = pool.circuits, pool.bulkhead.compartment(destination.key)
    if not compartment.try_acquire():
        circuits.check(destination)  # an open circuit refuses before the wait
        began_s = asyncio.get_running_loop().time()
        with request.timing.session:
            await compartment.acquire(request.deadline)
        waited_s = asyncio.get_running_loop().time() - began_s
        # The wait is ours: the vendor keeps its whole timeout.
        request = msgspec.structs.replace(request, deadline=request.deadline + waited_s)
    trials: Trials = ()
    try:
        trials = circuits.enter(destination)
        return await _send_request(pool, destination, request)
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


async def _send_request(pool: SessionPool, destination: Destination, request: RpcRequest) -> RpcResponse:
    refusal: replies.RpcError | None = None
    for last_try in (False, True):
        with request.timing.session:
            session = await pool.lease(destination, deadline=request.deadline)
        if refusal is not None and not session.is_modern:
            return refusal
        if request.tool is not None and request.tool.is_retry and not session.is_modern:
            raise errors.bad_response("it asked in a protocol version that the vendor no longer supports")
        try:
            with request.timing.vendor:
                answer = await session.request(request)
        except StaleSession as stale:
            pool.evict(destination, session, is_of_other_era=isinstance(stale, OtherEra))
            if last_try or not (stale.is_certain or request.is_repeatable):
                return _final_error(stale)
            if isinstance(stale, OtherEra) and not session.is_modern and not request.is_repeatable:
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
