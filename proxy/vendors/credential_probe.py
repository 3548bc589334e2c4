"""A short conversation with a vendor outside the pool: checks that it responds and accepts the credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from credentials.vendor_check import ProbeAnswer
from gateway.lib.outbound import AddressRefused
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.vendors.errors import AddressNotAllowed, StaleSession, VendorProblem
from proxy.vendors.session import VendorSession
from proxy.vendors.transport import configured_transport
from proxy.vendors.vendor_access import VendorAccess


async def probe_credentials(
    url: str, headers: Mapping[str, str], method: str, params: Mapping[str, Any], timeout_s: float
) -> ProbeAnswer:
    """`initialize` and one request, for credentials.vendor_check.VendorProbe. Raises: AddressRefused."""
    transport = configured_transport()
    session = VendorSession(transport, VendorAccess(url, headers))
    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        await session.initialize(deadline=deadline)
        answer = await session.request(method, params, deadline=deadline)
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
    return ProbeAnswer(200, tools_listed=method == "tools/list")


def _as_probe_answer(fault: VendorProblem | StaleSession) -> ProbeAnswer:
    if isinstance(fault, VendorProblem) and fault.fault is VendorFault.REJECTED_CREDENTIALS:
        return ProbeAnswer(401)  # 403 as well
    if isinstance(fault, VendorProblem) and fault.fault is VendorFault.BAD_RESPONSE:
        return ProbeAnswer(200)
    return ProbeAnswer(None)
