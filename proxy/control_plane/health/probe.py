"""One probe of a vendor: POST initialize without credentials, never GET."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import structlog

from gateway.catalog.vendor import Vendor
from gateway.lib import clock
from proxy.control_plane.health.states import ProbeResult
from proxy.outcomes import VendorFault
from proxy.protocol import jsonrpc, replies, sse
from proxy.vendors.errors import VendorProblem
from proxy.vendors.handshake import INITIALIZE_PARAMS, base_headers
from proxy.vendors.message_reader import read_stream
from proxy.vendors.session import CLOSE_DEADLINE_S
from proxy.vendors.transport import VendorResponse, VendorTransport

log = structlog.get_logger(__name__)
_FAULTS = {
    VendorFault.UNAVAILABLE: "could not be reached",
    VendorFault.BAD_RESPONSE: "broke off its answer",
}


async def probe(transport: VendorTransport, vendor: Vendor, *, deadline_s: float) -> ProbeResult:
    """The vendor's answer within `deadline_s`. Spec: §3 · D131"""
    started = time.perf_counter()
    deadline = asyncio.get_running_loop().time() + deadline_s
    # Never with a customer's credentials.
    headers = base_headers()
    try:
        body = jsonrpc.request(1, "initialize", INITIALIZE_PARAMS)
        async with transport.request("POST", vendor.url, headers, body, deadline=deadline) as answer:
            latency_ms = round((time.perf_counter() - started) * 1000)
            version, remark = await _read_initialize(answer)
            result = ProbeResult(clock.now(), latency_ms, answer.status, version, remark=remark)
            session_id = answer.header("Mcp-Session-Id")
    except VendorProblem as problem:
        waited = f"timed out after {deadline_s:g} s" if problem.fault is VendorFault.TIMEOUT else ""
        fault = waited or _FAULTS.get(problem.fault, problem.detail)
        return ProbeResult(clock.now(), round((time.perf_counter() - started) * 1000), None, fault=fault)
    if session_id:
        await _end(transport, vendor, {**headers, "Mcp-Session-Id": session_id})
    return result


async def _read_initialize(answer: VendorResponse) -> tuple[str, str]:
    """(server version, remark about an odd answer). Spec: protocol.md A.6"""
    if answer.status in (401, 403):
        return "", ""
    if answer.status != 200:
        return "", f"answered initialize with HTTP {answer.status}; tool calls may fail"
    try:
        async with aclosing(read_stream(answer)) as found:
            async for message in found:
                if isinstance(message, replies.VendorResult):
                    return replies.server_version(message.raw_result), ""
                if isinstance(message, replies.RpcError):
                    return "", f"answered initialize with error {message.code}; tool calls may fail"
    except (replies.BadVendorReply, sse.SSETooLarge):
        log.debug("probe answered with something else")
    return "", "answered initialize with something that is not MCP; tool calls may fail"


async def _end(transport: VendorTransport, vendor: Vendor, headers: dict[str, str]) -> None:
    # End the session that the probe opened.
    deadline = asyncio.get_running_loop().time() + CLOSE_DEADLINE_S
    try:
        async with transport.request("DELETE", vendor.url, headers, None, deadline=deadline):
            return
    except VendorProblem as problem:
        log.debug("probe session not closed", vendor=vendor.slug, fault=problem.fault.value)
