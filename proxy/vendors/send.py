"""Send one request to a vendor; if the vendor disowns the session before running it, once more on a new one.

A call that may change something is sent again only after the vendor's exact word that the session is unknown to it.
Words that merely mention a session may be the tool's, after it ran.   Spec: D104
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
    is_repeatable: bool = True,
) -> replies.VendorResult | replies.VendorError:
    """The vendor's answer; its progress meanwhile goes to `relay`. A write that may have run is never sent twice.

    A request that `is_repeatable` changes nothing at the vendor, and is sent once more already when the vendor seems to
    have lost the session.
    Sent when the organization has a place at the vendor, and unless the circuit is open (docs/decisions/0008). The time
    spent waiting for a place is not the vendor's: `deadline` moves by it.
    Raises: VendorProblem.   Spec: §4.14 (3)-(5) · D104
    """
    timing = timing or Timing()
    circuits, place = pool.circuits, pool.bulkhead.compartment(destination.key)
    if not place.take():
        circuits.check(destination)
        began_s = asyncio.get_running_loop().time()
        with timing.session:
            await place.wait(deadline)
        deadline += asyncio.get_running_loop().time() - began_s  # the vendor has its whole time all the same
    trials: Trials = ()
    try:
        trials = circuits.enter(destination)
        return await _request_once_more(pool, destination, method, params, deadline, timing, relay, is_repeatable)
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
    is_repeatable: bool,
) -> replies.VendorResult | replies.VendorError:
    for last_try in (False, True):
        with timing.session:
            session = await pool.lease(destination, deadline=deadline)
        try:
            with timing.vendor:
                answer = await session.request(method, params, deadline=deadline, relay=relay, timing=timing)
        except StaleSession as stale:
            pool.evict(destination, session)
            if last_try or not (stale.is_certain or is_repeatable):
                return _final_word(stale)
        except errors.VendorProblem as problem:
            pool.circuits.note(destination, problem.sign)
            raise
        else:
            pool.circuits.note(destination, errors.Sign.ANSWERED)
            return answer
    raise AssertionError("unreachable")


def _final_word(stale: StaleSession) -> replies.VendorError:
    """The caller's error when the request is not sent again: the vendor's own.

    Raises: VendorProblem where there is none, or it speaks of nothing but a session of ours.
    """
    if stale.is_certain:
        raise errors.unavailable("The vendor forgets its sessions at once.", errors.Sign.ANSWERED) from stale
    if stale.error is None:
        raise errors.bad_response(f"HTTP {stale.status}") from stale
    return stale.error
