"""Calls that a vendor answers with any bytes end in one of the documented ways, and do not touch the next one."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.outcomes import VendorFault
from proxy.protocol import replies
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import VendorProblem
from proxy.vendors.http1 import Limits
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import send_request
from tests.factories.vendor_pools import new_pool, new_transport
from tests.fakes.raw_vendor import RawVendor, raw_vendor
from tests.unit.proxy.protocol.schemas import JSON

LIMITS = Limits(connect_s=2.0, chunk_s=2.0, body_bytes=100_000)
STATUSES = st.sampled_from([200, 200, 200, 100, 103, 202, 204, 301, 304, 400, 401, 403, 404, 418, 429, 500, 503, 999])
KINDS = st.sampled_from([b"application/json", b"text/event-stream", b"text/html", b"text/event-stream;x", b""])
CODINGS = st.sampled_from([b"", b"", b"", b"Content-Encoding: gzip\r\n", b"Content-Encoding: br\r\n"])
FRAMES = st.sampled_from([b"length", b"length", b"chunked", b"close", b"short", b"long", b"twice"])
MEMBERS = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
    st.sampled_from(["2.0", 2, "notifications/progress", "ping", {"code": 1, "message": "m"}, {"content": []}]) | JSON,
)
TEXTS = (JSON | MEMBERS | st.lists(MEMBERS, max_size=2)).map(lambda value: json.dumps(value).encode())
EVENTS = st.lists(
    st.builds(
        lambda field, data, end: field + data + end,
        st.sampled_from([b"data: ", b"data:", b"id: ", b"event: ", b"retry: ", b": ", b"", b"\xef\xbb\xbfdata: "]),
        TEXTS | st.binary(max_size=20),
        st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b""]),
    ),
    max_size=6,
).map(b"".join)


def framed(status: int, kind: bytes, coding: bytes, frame: bytes, body: bytes) -> bytes:
    """An answer whose head says something about its body, true or not."""
    head = b"HTTP/1.1 %d Word\r\nContent-Type: %b\r\n%b" % (status, kind, coding)
    lengths = {b"length": len(body), b"short": max(0, len(body) - 3), b"long": len(body) + 9}
    if frame in lengths:
        return head + b"Content-Length: %d\r\n\r\n" % lengths[frame] + body
    if frame == b"chunked":
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    if frame == b"twice":
        return head + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + body
    return head + b"Connection: close\r\n\r\n" + body


ANSWERS = st.binary(max_size=200) | st.builds(
    framed, STATUSES, KINDS, CODINGS, FRAMES, TEXTS | EVENTS | st.binary(max_size=60)
)


class Vendor:
    """Shakes hands as it should, and answers one call with `garbage`, in pieces cut at `cuts`; then it behaves."""

    def __init__(self, garbage: bytes, cuts: list[int]) -> None:
        edges = sorted({min(cut, len(garbage)) for cut in cuts} | {0, len(garbage)})
        self.pieces = [garbage[start:end] for start, end in itertools.pairwise(edges)]
        self.behaves = False
        self.has_closed = asyncio.Event()

    async def script(self, vendor: RawVendor, writer: asyncio.StreamWriter) -> None:
        _, _, body = vendor.requests[-1].partition(b"\r\n\r\n")
        asked: dict[str, Any] = json.loads(body) if body else {}
        if asked.get("method") == "tools/call" and not self.behaves:
            try:
                for piece in self.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            finally:  # also when the gateway has hung up first
                writer.close()
                self.has_closed.set()
            return
        result: dict[str, Any] = {"content": [], "structuredContent": asked.get("params")}
        if asked.get("method") == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "v", "version": "1"}}
        if "id" in asked and "method" in asked:
            text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
            session = b"Mcp-Session-Id: s-1\r\n" if asked["method"] == "initialize" else b""
            start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            writer.write(start + session + b"Content-Length: %d\r\n\r\n" % len(text) + text)
        else:
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def pool_for(vendor: RawVendor) -> AsyncIterator[tuple[SessionPool, Destination]]:
    """A pool of its own, and where the vendor is."""
    transport = new_transport(limits=LIMITS)
    pool = new_pool(transport, idle_s=60)
    key = PoolKey.of(uuid.UUID(int=1), "vendor", uuid.UUID(int=2), vendor.url, {})
    try:
        yield pool, Destination(key, lambda: (vendor.url, {"X-Key": "k"}))
    finally:
        await pool.aclose()
        await transport.aclose()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(garbage=ANSWERS, cuts=st.lists(st.integers(0, 300), max_size=4))
def test_any_answer_ends_the_call_in_a_documented_way(garbage: bytes, cuts: list[int]) -> None:
    async def check() -> None:
        behaviour = Vendor(garbage, cuts)
        async with raw_vendor(behaviour.script) as vendor, pool_for(vendor) as (pool, where):
            deadline = asyncio.get_running_loop().time() + 20
            params: dict[str, Any] = {"name": "a", "arguments": {}}
            ended: object
            try:
                ended = await send_request(pool, where, RpcRequest("tools/call", params, deadline))
            except VendorProblem as problem:
                ended = problem
            assert isinstance(ended, replies.VendorResult | replies.RpcError | VendorProblem)
            if isinstance(ended, VendorProblem):
                assert ended.fault in VendorFault
                assert ended.detail.isprintable()
            await asyncio.wait_for(behaviour.has_closed.wait(), 20)
            await asyncio.sleep(0.01)  # for the end of the connection to be on its way
            behaviour.behaves = True
            params = {"name": "b", "arguments": {"nonce": 7}}
            answer = await send_request(pool, where, RpcRequest("tools/call", params, deadline))
            assert isinstance(answer, replies.VendorResult)
            assert json.loads(answer.raw_result)["structuredContent"] == params

    asyncio.run(check())
