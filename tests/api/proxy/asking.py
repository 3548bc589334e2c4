"""A vendor of the earlier revisions that asks its caller in the middle of a call, and a client that answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx
from aiohttp import web

from tests.api.proxy.conftest import Agent, headers
from tests.api.proxy.streams import Stream
from tests.fakes.vendor import FakeVendor

CAN: dict[str, Any] = {"elicitation": {}, "sampling": {}}
FORM: dict[str, Any] = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
YES: dict[str, Any] = {"action": "accept", "content": {"sure": True}}
VERSION = "2025-11-25"


@dataclass
class AskingVendor(FakeVendor):
    """Its tools ask `questions`, one after the other or `at_once`, and answer with what they got."""

    questions: list[dict[str, Any]] = field(default_factory=lambda: [form()])
    at_once: bool = False
    never_ends: bool = False  # keeps silent after the answers
    never_waits: bool = False  # for the last answers
    before: list[dict[str, Any]] = field(default_factory=list)  # notifications at the start of a call
    answers: dict[Any, dict[str, Any]] = field(default_factory=dict)  # by the question's id
    told: list[dict[str, Any]] = field(default_factory=list)  # capabilities of each handshake
    called_in: list[str] = field(default_factory=list)  # sessions of the calls
    levels: list[str] = field(default_factory=list)  # that it was asked for
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    def declared(self) -> dict[str, Any]:
        return {"tools": {}, "logging": {}}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.method == "POST" else {}
        if body.get("method") == "initialize":
            self.told.append(body["params"]["capabilities"])
        if body.get("method") == "logging/setLevel":
            self.levels.append(body["params"]["level"])
        if "method" not in body and "id" in body:
            async with self._came:
                self.answers[body["id"]] = body
                self._came.notify_all()
        return await super().handle(request)

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["method"] != "tools/call":
            if body["method"] == "logging/setLevel":
                return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {}})
            return await super()._answer(request, body)
        self.called_in.append(request.headers["Mcp-Session-Id"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            for note in self.before:
                await response.write(_event(note))
            for number, each in enumerate(self.questions):
                await response.write(_event({"jsonrpc": "2.0", "id": number, **each}))
                if not self.at_once:
                    await self._wait(number + 1)
            await self._wait(0 if self.never_waits else len(self.questions))
            if self.never_ends:
                await asyncio.sleep(30)
            found = [self.answers.get(number, {}).get("result") for number in range(len(self.questions))]
            result = {"content": [{"type": "text", "text": json.dumps(found)}]}
            await response.write(_event({"jsonrpc": "2.0", "id": body["id"], "result": result}))
        except (asyncio.CancelledError, ConnectionResetError):
            self.broken_off += 1
            raise
        return response

    async def _wait(self, count: int) -> None:
        async with self._came:
            await self._came.wait_for(lambda: len(self.answers) >= count)


def form(**params: Any) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {**FORM, **params}}


def _event(message: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


async def begin(
    agent: Agent, bearer: str, can: dict[str, Any] | None = None, path: str = "/v1/mcp", **more: Any
) -> httpx.Response:
    """One `initialize`."""
    params = {"protocolVersion": VERSION, "capabilities": CAN if can is None else can, **more}
    return await agent.rpc(bearer, "initialize", params, path=path)


async def session_of(agent: Agent, bearer: str, can: dict[str, Any] | None = None, path: str = "/v1/mcp") -> str:
    """The id of a new session."""
    answer = await begin(agent, bearer, can, path)
    assert answer.status_code == 200
    session: str = answer.headers["Mcp-Session-Id"]
    return session


def named(session: str | None) -> dict[str, str]:
    """The headers of a client in a session."""
    return {"MCP-Protocol-Version": VERSION, **({} if session is None else {"Mcp-Session-Id": session})}


async def say(
    agent: Agent, bearer: str, session: str | None, message: dict[str, Any], path: str = "/v1/mcp"
) -> httpx.Response:
    """One answer of a client."""
    body = {"jsonrpc": "2.0", **message}
    return await agent.http.post(path, json=body, headers=headers(bearer, named(session)))


def calling(bearer: str, session: str | None, tool: str = "fake_write", path: str = "/v1/mcp", **params: Any) -> Stream:
    """A tools/call of a client in a session."""
    asked = {"name": tool, "arguments": {}, **params}
    body = {"jsonrpc": "2.0", "id": "call-1", "method": "tools/call", "params": asked}
    return Stream(path, bearer, body, named(session))
