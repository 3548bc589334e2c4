"""The CLI wrapper's commands and flags at the wire: what the schema shows can be sent, and reaches the vendor whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from gateway.coordination.rules import Rule
from tests.api.proxy.conftest import Agent, headers
from tests.factories.tenant import Tenant, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

TICKET = {
    "name": "fake_create_ticket",
    "description": "Open a ticket.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "note": {"type": "string", "default": "none"},
            "subject": {"type": "string", "description": "What it is about."},
            "requester": {
                "type": "object",
                "properties": {
                    "email": {"type": "string", "format": "email"},
                    "age": {"type": "integer", "minimum": 0},
                },
                "required": ["email"],
            },
            "urgency": {"type": "string", "enum": ["low", "high"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object", "additionalProperties": {"type": "string"}},
            "due": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "far": {"$ref": "https://elsewhere.example/schema.json"},
        },
        "required": ["subject", "requester"],
    },
}


def flag(name: str, kind: str, description: str = "", *, required: bool = False) -> dict[str, Any]:
    """A flag as the schema shows it."""
    return {"name": name, "type": kind, "required": required, "description": description}


async def schema(agent: Agent, jwt: str) -> Any:
    """GET /v1/fake/cli/schema."""
    return await agent.http.get("/v1/fake/cli/schema", headers=headers(jwt, {}))


async def test_flags_are_flat_and_required_ones_come_first(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    vendor.tools = [TICKET]
    answer = await schema(agent, jwt)
    assert answer.headers["Content-Type"] == "application/json"
    (command,) = answer.json()["commands"]
    assert (command["command"], command["description"]) == ("create-ticket", "Open a ticket.")
    assert command["flags"] == [
        flag("subject", "string", "What it is about.", required=True),
        flag("requester.email", "string", "Format: email", required=True),
        flag("note", "string", "Default: none"),
        flag("requester.age", "integer", "Min: 0"),
        flag("urgency", "string", "One of: low, high"),
        flag("tags", "array", "(list of string, repeatable)"),
        flag("extra", "json", "(JSON)"),
        flag("due", "integer"),
        flag("far", "json", "(JSON)"),
    ]


@pytest.mark.parametrize(
    "args",
    [
        {"subject": "s", "requester": {"email": "a@b.example", "age": 7}},
        {"subject": "s", "requester.email": "a@b.example", "requester.age": 7},
        {"subject": "s", "requester": {"email": "a@b.example"}, "requester.age": 7},
    ],
    ids=["nested", "dotted", "both"],
)
async def test_nested_and_dotted_arguments_mean_the_same(
    agent: Agent, jwt: str, vendor: FakeVendor, args: dict[str, Any]
) -> None:
    vendor.tools = [TICKET]
    answer = await agent.cli(jwt, "create-ticket", args)
    assert answer.status_code == 200
    sent = vendor.bodies[-1]["params"]
    assert sent == {
        "name": "fake_create_ticket",
        "arguments": {"subject": "s", "requester": {"email": "a@b.example", "age": 7}},
    }


@pytest.mark.parametrize(
    "args",
    [
        {"requester.email": "a@b.example", "requester": {"email": "c@d.example"}},
        {"requester.email": "a@b.example", "requester": "somebody"},
    ],
)
async def test_arguments_that_contradict_each_other_are_400_and_on_record(
    agent: Agent, jwt: str, vendor: FakeVendor, args: dict[str, Any]
) -> None:
    vendor.tools = [TICKET]
    answer = await agent.cli(jwt, "create-ticket", args)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert vendor.seen["tools/call"] == 0
    (row,) = await in_thread(lambda: list(RequestAuditEntry.objects.all()))
    assert (row.status, row.error_code, row.tool) == ("denied", "bad_arguments", "fake_create_ticket")


@pytest.mark.parametrize("spelling", ["create-ticket", "fake_create_ticket", "fake__create_ticket"])
async def test_every_spelling_of_a_tool(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor, spelling: str
) -> None:
    """The allowlist knows the vendor's own name only."""
    vendor.tools = [TICKET]
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_create_ticket"))
    assert (await agent.cli(jwt, spelling, {"subject": "s"})).status_code == 200
    await in_thread(lambda: restrict_tools(tenant.organization, "create-ticket", "fake__create_ticket"))
    assert (await agent.cli(jwt, spelling, {"subject": "s"})).status_code == 403


async def test_what_is_no_text_arrives_as_json_text(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    vendor._call = lambda params: {  # type: ignore[method-assign]
        "result": {"content": [{"type": "text", "text": "two"}, image], "structuredContent": {"ignored": True}}
    }
    answer = await agent.cli(jwt, "list")
    first, second = answer.json()["result"]["content"]
    assert first == {"type": "text", "text": "two"}
    assert (second["type"], json.loads(second["text"])) == ("text", image)


async def test_all_text_of_a_failure_is_reported_and_bounded(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    blocks = [{"type": "text", "text": "first"}, {"type": "text", "text": "ü" * 5_000}]
    vendor._call = lambda params: {"result": {"content": blocks, "isError": True}}  # type: ignore[method-assign]
    answer = await agent.cli(jwt, "list")
    assert (answer.status_code, list(answer.json())) == (422, ["error"])
    assert answer.json()["error"].startswith("first\nüü")
    assert len(answer.json()["error"].encode()) <= 4_096


async def test_a_refusal_of_the_vendor_is_502_in_its_words(agent: Agent, jwt: str, vendor: FakeVendor) -> None:
    vendor.tools = [{"name": "fake_refuse", "description": "Refuses.", "inputSchema": {"type": "object"}}]
    answer = await agent.cli(jwt, "refuse")
    assert answer.status_code == 502
    assert answer.json() == {"error": "The vendor returned an error: refused by the vendor"}


async def test_the_schema_of_a_vendor_that_does_not_list_its_tools_is_502(
    agent: Agent, jwt: str, vendor: FakeVendor
) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp"))
    answer = await schema(agent, jwt)
    assert (answer.status_code, list(answer.json())) == (502, ["error"])
    assert "127.0.0.1" not in answer.text


async def test_the_schema_counts_for_the_backstop_and_not_for_calls(
    agent: Agent, jwt: str, vendor: FakeVendor, settings: Any
) -> None:
    settings.BACKSTOP = Rule("backstop", limit=2, window_s=60)
    first, _, third = [await schema(agent, jwt) for _ in range(3)]
    assert first.headers["RateLimit-Policy"] == '"backstop";q=2;w=60'
    assert (third.status_code, list(third.json())) == (429, ["error"])
    assert 0 < int(third.headers["Retry-After"]) <= 60
    called = await agent.cli(jwt, "list")
    assert called.headers["X-RateLimit-Remaining"] == "4999"
    assert vendor.seen["tools/list"] == 1, "the schema is made of a list that is kept"
