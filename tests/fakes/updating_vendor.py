"""The fake vendor that announces changes of its resources, in the earlier revisions or in the modern one."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.item_vendor import ItemVendor

MODERN = "2026-07-28"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


class _Open:
    """A stream that a client listens on. `wanted`: None in the earlier revisions, where sessions have subscriptions."""

    def __init__(
        self, session: str, response: web.StreamResponse, wanted: set[str] | None, own_id: Any, key: str | None
    ) -> None:
        self.session, self.response, self.wanted, self.own_id, self.key = session, response, wanted, own_id, key
        self.ended = asyncio.Event()


@dataclass
class UpdatingVendor(ItemVendor):
    """`has_stream`: GET is answered with one, else with `no_stream`. `keeps_none`: it acknowledges no address."""

    is_modern: bool = False
    has_stream: bool = True
    no_stream: int = 405
    announces: bool = True
    silent_about: set[str] = field(default_factory=set)  # earlier revisions: subscriptions without an answer
    keeps_none: bool = False
    subscribed: dict[str, set[str]] = field(default_factory=dict)  # by session
    unsubscribed: Counter[str] = field(default_factory=Counter)
    open_streams: list[_Open] = field(default_factory=list)
    most_streams: int = 0

    def declared(self) -> dict[str, Any]:
        return {"tools": {}, "resources": {"subscribe": self.announces}, "prompts": {}}

    @property
    def wanted(self) -> list[str]:
        """All addresses that somebody is subscribed to, with a stream."""
        found = [each.wanted or self.subscribed.get(each.session, set()) for each in self.open_streams]
        return sorted(set().union(*found))

    async def announce(self, uri: str, *, to_all: bool = False) -> None:
        """To each stream whose client is subscribed to it. `to_all`: the vendor lies."""
        for each in list(self.open_streams):
            wanted = self.subscribed.get(each.session, set()) if each.wanted is None else each.wanted
            if uri in wanted or to_all:
                params: dict[str, Any] = {"uri": uri}
                if each.own_id is not None:
                    params["_meta"] = {SUBSCRIPTION_ID: each.own_id}
                await each.response.write(
                    _event({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
                )

    async def say(self, method: str) -> None:
        """A notification to all."""
        for each in list(self.open_streams):
            await each.response.write(_event({"jsonrpc": "2.0", "method": method}))

    def end_streams(self) -> None:
        for each in self.open_streams:
            each.ended.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and not self.has_stream:
            self.seen["GET"] += 1
            return web.Response(status=self.no_stream)
        if request.method == "GET" and "Last-Event-ID" not in request.headers:
            self.seen["GET"] += 1
            if request.headers.get("X-Api-Key") != self.api_key:
                return web.Response(status=401)
            session = request.headers["Mcp-Session-Id"]
            if session not in self.sessions:
                return web.Response(status=404)
            return await self._stay_open(request, session, None, None)
        if request.headers.get("MCP-Protocol-Version") == MODERN:
            return await self._modern(request) if self.is_modern else web.Response(status=400)
        return await super().handle(request)

    async def _modern(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        method = body["method"]
        self.seen[method] += 1
        self.bodies.append(body)
        if request.headers.get("X-Api-Key") != self.api_key:
            return web.Response(status=401)
        if method == "subscriptions/listen":
            wanted = set(body["params"]["notifications"]["resourceSubscriptions"])
            return await self._stay_open(request, "", set() if self.keeps_none else wanted, body["id"])
        if method == "server/discover":
            result: dict[str, Any] = {"supportedVersions": [MODERN], "capabilities": self.declared()}
        elif method == "tools/list":
            result = {"tools": self.tools, "ttlMs": 0, "cacheScope": "private"}
        else:
            result = json.loads(self._raw(method, body["params"]) or "{}")
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {"resultType": "complete", **result}})

    async def _stay_open(
        self, request: web.Request, session: str, wanted: set[str] | None, own_id: Any
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": here\n\n")
        if wanted is not None:
            params = {"_meta": {SUBSCRIPTION_ID: own_id}, "notifications": {"resourceSubscriptions": sorted(wanted)}}
            method = "notifications/subscriptions/acknowledged"
            await response.write(_event({"jsonrpc": "2.0", "method": method, "params": params}))
        stream = _Open(session, response, wanted, own_id, request.headers.get("X-Api-Key"))
        self.open_streams.append(stream)
        self.most_streams = max(self.most_streams, len(self.open_streams))
        try:
            await stream.ended.wait()
        finally:
            self.open_streams.remove(stream)
        return response

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        method, session = body["method"], request.headers["Mcp-Session-Id"]
        if method in self.errors or method not in ("resources/subscribe", "resources/unsubscribe"):
            return await super()._answer(request, body)
        uri = body["params"]["uri"]
        if uri in self.silent_about:
            await asyncio.sleep(60)
        if method == "resources/subscribe":
            self.subscribed.setdefault(session, set()).add(uri)
        else:
            self.unsubscribed[uri] += 1
            self.subscribed.get(session, set()).discard(uri)
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {}})


def _event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"
