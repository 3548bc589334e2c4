"""One probe of a vendor: POST initialize without credentials, never GET."""

from __future__ import annotations

import structlog

from gateway.catalog.vendor import Vendor
from gateway.lib import clock
from proxy.control_plane.health.states import ProbeResult
from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.vendors.conversation import Conversation, Reply
from proxy.vendors.handshake import base_headers
from proxy.vendors.session import CLOSE_DEADLINE_S
from proxy.vendors.transport import VendorTransport

log = structlog.get_logger(__name__)
_FAULTS = {
    VendorFault.UNAVAILABLE: "could not be reached",
    VendorFault.BAD_RESPONSE: "cut off its response",
}


async def probe(transport: VendorTransport, vendor: Vendor, *, deadline_s: float) -> ProbeResult:
    """The vendor's answer within `deadline_s`. Spec: §3 · D131"""
    # Never with a customer's credentials.
    conversation = Conversation(transport, vendor.url, base_headers(), deadline_s)
    reply = await conversation.initialize()
    if reply.problem is not None:
        fault = _FAULTS.get(reply.problem.fault, reply.problem.detail)
        if reply.problem.is_unknown_host:
            fault = "host name not found"
        elif reply.problem.fault is VendorFault.TIMEOUT:
            fault = f"timed out after {deadline_s:g} s"
        return ProbeResult(clock.now(), reply.latency_ms, None, fault=fault)
    version, remark = _version_and_remark(reply)
    if remark:
        asked = await conversation.discover()
        if conversation.is_modern:  # it begins no sessions, and needs none
            reply, remark = asked, ""
    result = ProbeResult(clock.now(), reply.head_ms, reply.status, version, remark=remark)
    if reply.session_id:
        closed = await conversation.notify("DELETE", None, deadline_s=CLOSE_DEADLINE_S)
        log.debug("probe session closed", vendor=vendor.slug, answer=closed)
    return result


def _version_and_remark(reply: Reply) -> tuple[str, str]:
    """(server version, remark about an odd answer). Spec: protocol.md A.6"""
    if reply.status in (401, 403):
        return "", ""
    if isinstance(reply.message, replies.VendorResult):
        return replies.server_version(reply.message.raw_result), ""
    if reply.status != 200:
        answer = f"HTTP {reply.status}"
    elif isinstance(reply.message, replies.RpcError):
        answer = f"error {reply.message.code}"
    else:
        answer = "something that is not MCP"
    return "", f"answered initialize with {answer}; tool calls may fail"
