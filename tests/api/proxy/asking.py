"""A vendor of the earlier revisions that asks its caller in the middle of a call, and a client that answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from aiohttp import web

from credentials.models import QUESTION_KINDS
from credentials.services.vendor_question_rules import change_question_rules
from gateway.catalog.registry import known_vendor
from proxy.protocol.modern.input_required import MAY_ASK
from tests.api.proxy.conftest import Agent, headers
from tests.api.proxy.streams import Stream
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_connected_tenant
from tests.fakes.era_vendor import EraVendor
from tests.fakes.item_vendor import ItemVendor
from tests.fakes.vendor import FakeVendor, running_vendor

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

    def result(self, body: dict[str, Any], found: str) -> dict[str, Any]:
        """The result of a request that asked: `found`, as JSON, in the form of its method."""
        if body["method"] == "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": found}}]}
        if body["method"] == "resources/read":
            return {"contents": [{"uri": body["params"]["uri"], "text": found}]}
        return {"content": [{"type": "text", "text": found}]}

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["method"] not in MAY_ASK:
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
            result = self.result(body, json.dumps(found))
            await response.write(_event({"jsonrpc": "2.0", "id": body["id"], "result": result}))
        except (asyncio.CancelledError, ConnectionResetError):
            self.broken_off += 1
            raise
        return response

    async def _wait(self, count: int) -> None:
        async with self._came:
            await self._came.wait_for(lambda: len(self.answers) >= count)


@dataclass
class AskingItemVendor(AskingVendor, ItemVendor):
    """Its prompts and resources ask too."""

    def declared(self) -> dict[str, Any]:
        return {**self.capabilities, "logging": {}}


@pytest.fixture
async def vendor() -> AsyncIterator[AskingVendor]:
    """The vendor of `tenant`, whose tools ask."""
    async with running_vendor(AskingVendor) as running:
        assert isinstance(running, AskingVendor)
        yield running


@pytest.fixture
async def item_vendor() -> AsyncIterator[AskingItemVendor]:
    """As `vendor`; prompts and resources ask too."""
    async with running_vendor(AskingItemVendor) as running:
        assert isinstance(running, AskingItemVendor)
        yield running


@pytest.fixture
def tenant(vendor: AskingVendor | EraVendor, committed_cast: Cast) -> Tenant:
    """An agent whose organization is connected to `vendor`, and lets it ask everything."""
    made = make_connected_tenant(committed_cast.org, committed_cast.user("owner"), vendor.url)
    let_ask(made, *QUESTION_KINDS)
    return made


def let_ask(tenant: Tenant, *kinds: str, vendor: str = "fake") -> None:
    """The organization lets the vendor ask these kinds of questions, and no others."""
    change_question_rules(
        actor=tenant.owner, organization=tenant.organization, vendor=known_vendor(vendor), allowed=kinds
    )


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
    return sending(bearer, session, "tools/call", {"name": tool, "arguments": {}, **params}, path)


def sending(
    bearer: str, session: str | None, method: str, params: dict[str, Any], path: str = "/v1/mcp", **more: Any
) -> Stream:
    """A request of a client in a session."""
    body = {"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params}
    return Stream(path, bearer, body, named(session) | more)
