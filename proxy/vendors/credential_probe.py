"""A short conversation with a vendor outside the pool: checks that it responds and accepts the credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from credentials.vendor_check import ProbeAnswer
from gateway.lib.outbound import AddressRefused
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.vendors.errors import AddressNotAllowed, StaleSession, VendorProblem
from proxy.vendors.opening import open_for_check
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.session import VendorSession
from proxy.vendors.transport import configured_transport
from proxy.vendors.vendor_access import VendorAccess

# Seconds. The count of tools takes no longer, and leaves the rest of the check's time to its end.
_COUNT_WITHIN_S = 2.0
_TIME_LEFT_S = 0.5


async def probe_credentials(
    url: str, headers: Mapping[str, str], method: str, params: Mapping[str, Any], timeout_s: float
) -> ProbeAnswer:
    """A session and one request, for credentials.vendor_check.VendorProbe. Raises: AddressRefused."""
    transport = configured_transport()
    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        session = await open_for_check(transport, VendorAccess(url, headers), deadline=deadline)
        answer = await session.request(RpcRequest(method, params, deadline))
        tools = await _count_tools(session, answer, method, deadline)
        await session.close()
    except AddressNotAllowed as fault:
        raise AddressRefused from fault
    except (VendorProblem, StaleSession) as fault:
        return _as_probe_answer(fault)
    finally:
        await transport.aclose()
    if isinstance(answer, replies.RpcError):
        return ProbeAnswer(200, is_error=True, error_text=answer.message)
    if answer.is_error:
        return ProbeAnswer(200, is_error=True, error_text=replies.error_text(answer.raw_result))
    return ProbeAnswer(200, tools_listed=method == "tools/list", tools=tools)


async def _count_tools(
    session: VendorSession, answer: replies.VendorResult | replies.RpcError, method: str, deadline: float
) -> int | None:
    """How many tools the vendor lists; None if it does not say in time. The answer to the check counts without it."""
    if isinstance(answer, replies.RpcError) or answer.is_error:
        return None
    by_then = min(deadline - _TIME_LEFT_S, asyncio.get_running_loop().time() + _COUNT_WITHIN_S)
    listed, cursor = 0, None
    try:
        if method != "tools/list":
            answer = await session.request(RpcRequest("tools/list", {}, by_then))
        for _ in range(settings.TOOL_LIST_MAX_PAGES):
            if isinstance(answer, replies.RpcError):
                return None
            page = replies.raw_tools_page(answer.raw_result)
            listed += len(page.tools)
            if page.next_cursor is None or page.next_cursor == cursor:
                return listed
            cursor = page.next_cursor
            answer = await session.request(RpcRequest("tools/list", {"cursor": cursor}, by_then))
    except (VendorProblem, StaleSession, replies.BadVendorReply):
        return None
    return None


def _as_probe_answer(fault: VendorProblem | StaleSession) -> ProbeAnswer:
    if isinstance(fault, VendorProblem) and fault.fault is VendorFault.REJECTED_CREDENTIALS:
        return ProbeAnswer(fault.status or 401)
    if isinstance(fault, VendorProblem) and fault.fault is VendorFault.BAD_RESPONSE:
        return ProbeAnswer(200)
    if not isinstance(fault, VendorProblem):
        return ProbeAnswer(None)
    return ProbeAnswer(fault.status, failure="" if fault.fault is VendorFault.TIMEOUT else fault.detail)
