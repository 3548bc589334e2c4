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
from proxy.vendors.errors import StaleSession
from proxy.vendors.pool import Destination, SessionPool


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
) -> replies.VendorResult | replies.VendorError:
    """The vendor's answer; its progress goes to `relay`. Raises: VendorProblem.

    `is_repeatable`: the request changes nothing at the vendor, and is retried on a mere sign of a lost session.
    Spec: §4.14 (3)-(5) · D104 · docs/decisions/0008
    """
    timing = timing or Timing()
    circuits, place = pool.circuits, pool.bulkhead.compartment(destination.key)
    if not place.take():
        circuits.check(destination)  # an open circuit refuses before the wait
        began_s = asyncio.get_running_loop().time()
        with timing.session:
            await place.wait(deadline)
        deadline += asyncio.get_running_loop().time() - began_s  # the wait is ours: the vendor keeps its whole timeout
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
    """The vendor's own error, when the request is not retried. Raises: VendorProblem without one."""
    if stale.is_certain:
        raise errors.unavailable("The vendor forgets its sessions at once.", errors.Sign.ANSWERED) from stale
    if stale.error is None:
        raise errors.bad_response(f"HTTP {stale.status}") from stale
    return stale.error
