"""One short conversation with a vendor, outside the pool: is anybody there, and do these credentials open the door."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from credentials.vendor_check import ProbeAnswer
from gateway.catalog.vendor import Vendor
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.vendors.errors import StaleSession, VendorProblem
from proxy.vendors.session import VendorSession
from proxy.vendors.transport import VendorTransport


class Probe:
    """Implements credentials.vendor_check.VendorProbe over the guarded transport."""

    async def initialize_and_list(
        self, vendor: Vendor, headers: Mapping[str, str], url: str, timeout_s: float
    ) -> ProbeAnswer:
        """See VendorProbe."""
        return await _converse(headers, url, timeout_s, "tools/list", {})

    async def initialize_and_call(
        self,
        vendor: Vendor,
        headers: Mapping[str, str],
        url: str,
        timeout_s: float,
        tool: str,
        arguments: Mapping[str, Any],
    ) -> ProbeAnswer:
        """See VendorProbe."""
        return await _converse(headers, url, timeout_s, "tools/call", {"name": tool, "arguments": dict(arguments)})


async def _converse(
    headers: Mapping[str, str], url: str, timeout_s: float, method: str, params: Mapping[str, Any]
) -> ProbeAnswer:
    transport = VendorTransport(allow_private=settings.ALLOW_PRIVATE_ENDPOINTS)
    session = VendorSession(transport, url, headers)
    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        await session.initialize(deadline=deadline)
        answer = await session.request(method, params, deadline=deadline)
        await session.close()
    except (VendorProblem, StaleSession) as fault:
        return _as_answer(fault)
    finally:
        await transport.aclose()
    if isinstance(answer, replies.VendorError):
        return ProbeAnswer(200, is_error=True, error_text=answer.message)
    if answer.is_error:
        return ProbeAnswer(200, is_error=True, error_text=replies.error_text(answer.raw_result))
    return ProbeAnswer(200, tools_listed=method == "tools/list")


def _as_answer(fault: VendorProblem | StaleSession) -> ProbeAnswer:
    if isinstance(fault, VendorProblem) and fault.fault is VendorFault.REJECTED_CREDENTIALS:
        return ProbeAnswer(401)
    if isinstance(fault, VendorProblem) and fault.fault is VendorFault.BAD_RESPONSE:
        return ProbeAnswer(200)
    return ProbeAnswer(None)
