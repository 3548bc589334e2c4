"""A vendor that a test can make behave as it likes, over a real socket of this computer."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOOLS: list[dict[str, Any]] = [
    {
        "name": "fake_list",
        "description": "List things.",
        "inputSchema": {"type": "object", "properties": {"site": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "fake_write", "description": "Change a thing.", "inputSchema": {"type": "object"}},
    {
        "name": "fake_fail",
        "description": "Fails.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
]


@dataclass
class FakeVendor:
    """Set an attribute, then call. `seen` counts JSON-RPC methods, `headers` keeps those of the last request."""

    url: str = ""
    api_key: str | None = "right-key"
    reply: str = "json"  # json | sse | html | wrong-id | silence | huge | asks | asks-much | flood
    steps: int = 0  # reports of progress in an event stream, `step_s` apart, if the call asks for them
    step_s: float = 0.0
    pace: asyncio.Semaphore | None = None  # each report waits for a permit before what follows it
    strays: list[dict[str, Any]] = field(default_factory=list)  # messages before each report
    cuts: int = 0  # how often an event stream ends, after a report, before it goes on for who asks with its last id
    retry_ms: int = 0  # when to ask
    status_of_rest: int = 200  # of what goes on
    status: int = 200
    lost_session_status: int = 404
    delay_s: float = 0.0
    list_delay_s: float = 0.0
    hang_s: float = 0.0
    retry_after: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=lambda: list(TOOLS))
    page_size: int = 100
    seen: Counter[str] = field(default_factory=Counter)
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    deleted: list[str] = field(default_factory=list)
    broken_off: int = 0  # calls whose connection was closed before their answer
    order: list[str] = field(default_factory=list)  # of all that came, as in `seen`
    _cut_off: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = field(default_factory=dict)  # by event id
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def forget_sessions(self) -> None:
        """As if the vendor had been restarted."""
        self.sessions.clear()

    def forget_requests(self) -> None:
        """A run of many requests keeps their counts alone, in `seen`."""
        for each in (self.bodies, self.refusals, self.deleted, self.order):
            each.clear()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One HTTP request."""
        self.headers = dict(request.headers)
        session = request.headers.get("Mcp-Session-Id", "")
        if request.method == "DELETE":
            self.deleted.append(session)
            return web.Response(status=204)
        if request.method == "GET":
            return await self._go_on(request)
        body = await request.json()
        self.bodies.append(body)
        method = body.get("method", "answer")
        self.seen[method] += 1
        self.order.append(method)
        if method != "server/discover":  # an earlier vendor refuses it at once
            await asyncio.sleep(self.hang_s)
        if method == "answer":
            self.refusals.append(body)
            return web.Response(status=202)
        if self.api_key is not None and request.headers.get("X-Api-Key") != self.api_key:
            return web.json_response({"error": "who are you"}, status=401, headers={"WWW-Authenticate": "Bearer"})
        if method == "initialize":
            return self._initialize(body)
        if session not in self.sessions:
            text = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "No valid session ID provided"}}
            return web.json_response(text, status=self.lost_session_status)
        if method.startswith("notifications/"):
            return web.Response(status=202)
        return await self._answer(request, body)

    def declared(self) -> dict[str, Any]:
        """The capabilities of the handshake."""
        return {"tools": {}}

    def _initialize(self, body: dict[str, Any]) -> web.Response:
        session = f"session-{next(self._numbers)}"
        self.sessions.add(session)
        result = {
            "protocolVersion": body["params"]["protocolVersion"],
            "capabilities": self.declared(),
            "serverInfo": {"name": "fake", "version": "1"},
        }
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return web.json_response(answer, headers={"Mcp-Session-Id": session, "Set-Cookie": "tenant=someone; Path=/"})

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["method"] == "tools/list":
            await asyncio.sleep(self.list_delay_s)
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": self._page(body)})
        await asyncio.sleep(self.delay_s)
        if self.status != 200:
            headers = {"Retry-After": self.retry_after} if self.retry_after else {}
            return web.Response(status=self.status, text="secret internals of the vendor", headers=headers)
        result = self._call(body["params"])
        answer = {"jsonrpc": "2.0", "id": body["id"], **result}
        if self.reply == "json":
            return web.json_response(answer)
        if self.reply == "html":
            return web.Response(text="<html>maintenance</html>", content_type="text/html")
        if self.reply == "wrong-id":
            return web.json_response({**answer, "id": 987_654})
        if self.reply == "huge":
            return web.json_response(
                {**answer, "result": {"content": [{"type": "text", "text": "x" * 11 * 1024 * 1024}]}}
            )
        try:
            return await self._stream(request, answer, body["params"])
        except (asyncio.CancelledError, ConnectionResetError):
            self.broken_off += 1
            raise

    async def _stream(self, request: web.Request, answer: dict[str, Any], params: dict[str, Any]) -> web.StreamResponse:
        if self.cuts:
            return await self._part(request, answer, params, 1)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"id: 0\nretry: 0\ndata:\n\n: comment\n\n")
        await self._report(response, params)
        if self.reply == "silence":
            await response.write_eof()
            return response
        if self.reply == "asks":
            asked = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {}}
            await response.write(b"data: " + json.dumps(asked).encode() + b"\n\n")
        if self.reply == "asks-much":
            await response.write(b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n' * 10_000)
        while self.reply.startswith("asks") and not self.refusals:
            await asyncio.sleep(0.01)
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
        await response.write(b"event: message\r\ndata: " + json.dumps(note).encode() + b"\r\n\r\n")
        whole = b"event: message\ndata: " + json.dumps(answer).encode() + b"\n\n"
        for part in (whole[:20], whole[20:]):
            await response.write(part)
            await asyncio.sleep(0)
        await response.write_eof()
        return response

    async def _go_on(self, request: web.Request) -> web.StreamResponse:
        """The events after one: for the session that it was sent to, with its credential."""
        self.seen["GET"] += 1
        self.order.append("GET")
        if self.status_of_rest != 200:
            return web.Response(status=self.status_of_rest, headers={"WWW-Authenticate": "Bearer"})
        if self.api_key is not None and request.headers.get("X-Api-Key") != self.api_key:
            return web.Response(status=401)
        event_id = request.headers.get("Last-Event-ID", "")
        kept = self._cut_off.pop(event_id, None)
        if kept is None or event_id.split("/")[0] != request.headers.get("Mcp-Session-Id"):
            return web.Response(status=405)
        return await self._part(request, *kept)

    async def _part(
        self, request: web.Request, answer: dict[str, Any], params: dict[str, Any], number: int
    ) -> web.StreamResponse:
        event_id = f"{request.headers['Mcp-Session-Id']}/{answer['id']}/{number}"
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"id: {event_id}\nretry: {self.retry_ms}\ndata:\n\n".encode())
        token = (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            report = {"progressToken": token, "progress": number, "message": _label(params)}
            await response.write(_event({"jsonrpc": "2.0", "method": "notifications/progress", "params": report}))
        if number <= self.cuts:
            self._cut_off[event_id] = (answer, params, number + 1)
        else:
            await response.write(_event(answer))
        await response.write_eof()
        return response

    async def _report(self, response: web.StreamResponse, params: dict[str, Any]) -> None:
        token = (params.get("_meta") or {}).get("progressToken")
        if token is None:
            return
        for step in itertools.count(1) if self.reply == "flood" else range(1, self.steps + 1):
            report = {"progressToken": token, "progress": step, "total": self.steps, "message": _label(params)}
            notes = [*self.strays, {"jsonrpc": "2.0", "method": "notifications/progress", "params": report}]
            events = [b"data: " + json.dumps(note).encode() + b"\n\n" for note in notes]
            await response.write(b"".join(events) * (500 if self.reply == "flood" else 1))
            if self.pace is not None:
                await self.pace.acquire()
            await asyncio.sleep(self.step_s)

    def _page(self, body: dict[str, Any]) -> dict[str, Any]:
        start = int(body["params"].get("cursor") or 0)
        page: dict[str, Any] = {"tools": self.tools[start : start + self.page_size]}
        if start + self.page_size < len(self.tools):
            page["nextCursor"] = str(start + self.page_size)
        return page

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name = params["name"]
        if name.endswith("fail"):
            return {"result": {"content": [{"type": "text", "text": "the thing broke"}], "isError": True}}
        if name.endswith("refuse"):
            return {"error": {"code": -32001, "message": "refused by the vendor", "data": {"why": "test"}}}
        text = json.dumps(params.get("arguments", {}), sort_keys=True)
        return {
            "result": {"content": [{"type": "text", "text": text}], "structuredContent": params.get("arguments", {})}
        }


def _event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def _label(params: dict[str, Any]) -> str:
    """A text that tells the reports of two calls apart."""
    return json.dumps(params.get("arguments", {}))


@asynccontextmanager
async def running_vendor(kind: type[FakeVendor] = FakeVendor, **settings: Any) -> AsyncIterator[FakeVendor]:
    """A vendor that listens on a free port of 127.0.0.1 until the block ends."""
    vendor = kind(**settings)
    app = web.Application(client_max_size=32 * 1024 * 1024)
    app.router.add_route("*", "/mcp", vendor.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    vendor.url = f"http://127.0.0.1:{port}/mcp"
    try:
        yield vendor
    finally:
        await runner.cleanup()
