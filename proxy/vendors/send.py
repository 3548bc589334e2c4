"""Send one request to a vendor; if the vendor disowns the session before running it, once more on a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.circuits import Trials
from proxy.vendors.errors import StaleSession
from proxy.vendors.pool import Destination, SessionPool


async def request_once_more(
    pool: SessionPool,
    destination: Destination,
    method: str,
    params: Mapping[str, Any],
    *,
    deadline: float,
    timing: Timing | None = None,
    relay: ProgressRelay | None = None,
) -> replies.VendorResult | replies.VendorError:
    """The vendor's answer; its progress meanwhile goes to `relay`. Nothing that may have run is ever sent twice.

    Sent when the organization has a place at the vendor, and unless the circuit is open (docs/decisions/0008).
    Raises: VendorProblem; TimeoutError while `relay` is full.   Spec: §4.14 (3)-(5) · D104
    """
    timing = timing or Timing()
    circuits, place = pool.circuits, pool.bulkhead.compartment(destination.key)
    if not place.take():
        circuits.check(destination)
        with timing.phase("session"):
            await place.wait(deadline)
    trials: Trials = ()
    try:
        trials = circuits.enter(destination)
        return await _request_once_more(pool, destination, method, params, deadline, timing, relay)
    finally:
        place.give_back()
        if trials:
            circuits.leave(trials)


async def _request_once_more(
    pool: SessionPool,
    destination: Destination,
    method: str,
    params: Mapping[str, Any],
    deadline: float,
    timing: Timing,
    relay: ProgressRelay | None,
) -> replies.VendorResult | replies.VendorError:
    for last_try in (False, True):
        with timing.phase("session"):
            session = await pool.lease(destination, deadline=deadline)
        try:
            with timing.phase("vendor"):
                answer = await session.request(method, params, deadline=deadline, relay=relay)
        except StaleSession as stale:  # only raised for "session unknown": the request was not run
            pool.evict(destination, session)
            if last_try:
                text = "The vendor forgets its sessions at once."
                raise errors.unavailable(text, errors.Sign.ANSWERED) from stale
        except errors.VendorProblem as problem:
            pool.circuits.note(destination, problem.sign)
            raise
        else:
            pool.circuits.note(destination, errors.Sign.ANSWERED)
            return answer
    raise AssertionError("unreachable")
