"""A conversation with a vendor for health probes and the doctor, outside the session pool.

Failures are returned in `Reply`, not raised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from proxy.protocol import jsonrpc, replies, sse
from proxy.protocol.modern import eras, headers, vendor_requests
from proxy.protocol.modern.eras import Era
from proxy.vendors.errors import VendorProblem
from proxy.vendors.handshake import CLIENT_INFO, INITIALIZE_PARAMS, session_headers, spoken_version
from proxy.vendors.message_reader import read_stream
from proxy.vendors.response import VendorResponse
from proxy.vendors.transport import VendorTransport


@dataclass(slots=True)
class Reply:
    """One exchange: `message` is a valid protocol answer, `fault` the reason why there is none.

    `head_ms` is the time until the head of the answer, `latency_ms` until its end. `problem`: the exchange failed.
    """

    status: int = 0
    kind: str = ""
    challenge: str = ""
    session_id: str = ""
    head_ms: int = 0
    latency_ms: int = 0
    message: replies.VendorResult | replies.RpcError | None = None
    fault: str = ""
    problem: VendorProblem | None = None

    @property
    def summary(self) -> str:
        if isinstance(self.message, replies.RpcError):
            return f"refused with error {self.message.code}: {self.message.message}"
        return self.fault or f"HTTP {self.status}"


@dataclass(slots=True)
class Conversation:
    """One session. Each exchange may take `deadline_s` seconds. `is_modern`: requests are of the modern revision."""

    transport: VendorTransport
    url: str
    headers: dict[str, str] = field(repr=False)
    deadline_s: float
    is_modern: bool = False

    async def discover(self) -> Reply:
        """Send `server/discover`. Later requests are of the modern revision if the vendor speaks it."""
        self.is_modern = True
        reply = await self.request("server/discover", {})
        self.is_modern = reply.status == 200 and eras.of_answer(200, reply.message) is Era.MODERN
        return reply

    async def initialize(self) -> Reply:
        """Send `initialize`. Later requests carry the session id and the protocol version from its answer.

        A protocol version that the gateway does not know is left out.
        """
        reply = await self.request("initialize", INITIALIZE_PARAMS)
        version = spoken_version(reply.message.raw_result) if isinstance(reply.message, replies.VendorResult) else None
        self.headers |= session_headers(version, reply.session_id or None)
        return reply

    async def request(self, method: str, params: Mapping[str, Any]) -> Reply:
        reply, began_s = Reply(), time.perf_counter()
        deadline = asyncio.get_running_loop().time() + self.deadline_s
        sent = self.headers
        if self.is_modern:
            sent = {**sent, **session_headers(vendor_requests.VERSION, None), **headers.of_request(method, params)}
            params = vendor_requests.with_meta(params, CLIENT_INFO)
        body = jsonrpc.request(1, method, params)
        try:
            async with self.transport.request("POST", self.url, sent, body, deadline=deadline) as answer:
                reply.head_ms = _ms_since(began_s)
                reply.status = answer.status
                reply.kind = "event stream" if answer.is_event_stream else "JSON"
                reply.challenge = answer.header("WWW-Authenticate") or ""
                reply.session_id = answer.header("Mcp-Session-Id") or ""
                if answer.status == 200:
                    reply.message = await _first_response(answer)
                    if reply.message is None:
                        reply.fault = "ended without an answer"
        except VendorProblem as problem:
            reply.fault, reply.problem = problem.detail, problem
        except (replies.BadVendorReply, sse.SSETooLarge) as fault:
            reply.fault = f"unusable answer: {fault}"
        reply.latency_ms = _ms_since(began_s)
        return reply

    async def notify(self, verb: str, body: bytes | None, *, deadline_s: float | None = None) -> str:
        """Send a notification or DELETE; returns the status in words."""
        deadline = asyncio.get_running_loop().time() + (deadline_s or self.deadline_s)
        try:
            async with self.transport.request(verb, self.url, self.headers, body, deadline=deadline) as answer:
                return f"HTTP {answer.status}"
        except VendorProblem as problem:
            return problem.detail


async def _first_response(answer: VendorResponse) -> replies.VendorResult | replies.RpcError | None:
    async with aclosing(read_stream(answer)) as found:
        async for message in found:
            if isinstance(message, replies.VendorResult | replies.RpcError):
                return message
    return None


def _ms_since(began_s: float) -> int:
    return round((time.perf_counter() - began_s) * 1000)
