"""POST /v1/:vendor/cli and GET /v1/:vendor/cli/schema: the status table of the specification, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from audit.models import RequestAuditEntry
from proxy.vendors import session
from tests.api.proxy.conftest import Agent, access_token, headers
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

TIMINGS = ("X-Auth-Ms", "X-Session-Ms", "X-Vendor-Ms", "X-Total-Ms")


@pytest.mark.parametrize("spelling", ["list", "fake_list"])
async def test_success_in_plain_json(agent: Agent, jwt: str, spelling: str) -> None:
    answer = await agent.cli(jwt, spelling, {"site": "hq"})
    assert answer.status_code == 200
    assert answer.json() == {"result": {"content": [{"type": "text", "text": '{"site": "hq"}'}]}}
    assert all(answer.headers[name].isdigit() for name in TIMINGS)
    (row,) = await in_thread(lambda: list(RequestAuditEntry.objects.all()))
    assert (row.source, row.vendor, row.tool, row.status) == ("cli", "fake", "fake_list", "success")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "The field 'tool' is required."),
        (b'{"tool":7}', None),
        (b'{"tool":""}', None),
        (b'{"Tool":"list"}', "The field 'tool' is required."),
        (b'{"tool":"list","args":[]}', None),
        (b'{"tool":"list","args":null}', None),
        (b'{"tool":"list","tool":"write"}', None),
        (b"not json", None),
        (b"", None),
        (b"[]", None),
    ],
)
async def test_bad_bodies_are_400_and_change_nothing(
    agent: Agent, jwt: str, vendor: FakeVendor, body: bytes, message: str | None
) -> None:
    sent = {"Content-Type": "application/json", **headers(jwt, {})}
    answer = await agent.http.post("/v1/fake/cli", content=body, headers=sent)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert message in (None, answer.json()["error"])
    assert all(answer.headers[name].isdigit() for name in TIMINGS)
    assert sum(vendor.seen.values()) == 0
    assert await in_thread(lambda: RequestAuditEntry.objects.count()) == 0


async def test_absent_args_are_none(agent: Agent, jwt: str) -> None:
    assert (await agent.cli(jwt, "list")).json()["result"]["content"][0]["text"] == "{}"


async def test_401_without_or_with_a_wrong_bearer_and_with_an_agent_key(agent: Agent, tenant: Tenant) -> None:
    for bearer in (None, "wrong", tenant.agent_key):
        answer = await agent.cli(bearer, "list")
        assert answer.status_code == 401
        assert list(answer.json()) == ["error"]
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
        assert all(answer.headers[name].isdigit() for name in TIMINGS)


async def test_403_for_every_rule(agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: FakeVendor) -> None:
    token = await in_thread(lambda: access_token(tenant))
    other = await in_thread(lambda: access_token(other_tenant))
    assert (await agent.cli(other, "list")).status_code == 403  # no credentials
    assert (await agent.cli(token, "list", vendor="unknown")).status_code == 403
    assert (await agent.cli(token, "nothing")).status_code == 403
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert (await agent.cli(token, "write")).status_code == 403
    assert vendor.seen["tools/call"] == 0
    codes = await in_thread(
        lambda: list(RequestAuditEntry.objects.order_by("timestamp", "id").values_list("status", "error_code"))
    )
    assert codes == [
        ("denied", "no_credentials"),
        ("denied", "unknown_vendor"),
        ("denied", "unknown_tool"),
        ("denied", "tool_not_allowed"),
    ]


async def test_a_token_for_another_vendor_is_insufficient(agent: Agent, tenant: Tenant) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp", slug="globex"))
    token = await in_thread(lambda: access_token(tenant, scope="mcp:globex"))
    answer = await agent.cli(token, "list")
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]
    assert "mcp:fake" in answer.headers["WWW-Authenticate"]
    unified = await agent.rpc(token, "tools/call", {"name": "fake_list"})
    assert (unified.status_code, unified.json()["error"]) == (403, "insufficient_scope")


async def test_422_when_the_tool_fails(agent: Agent, jwt: str) -> None:
    answer = await agent.cli(jwt, "fail")
    assert (answer.status_code, answer.json()) == (422, {"error": "the thing broke"})


@pytest.mark.parametrize(
    "setting",
    [{"status": 503}, {"status": 403}, {"status": 429, "retry_after": "9"}, {"reply": "html"}, {"reply": "silence"}],
)
async def test_502_for_everything_at_the_vendor(
    agent: Agent, jwt: str, vendor: FakeVendor, setting: dict[str, Any]
) -> None:
    for name, value in setting.items():
        setattr(vendor, name, value)
    answer = await agent.cli(jwt, "list")
    assert answer.status_code == 502
    assert list(answer.json()) == ["error"]
    assert "secret internals" not in answer.text
    assert answer.headers.get("Retry-After") == setting.get("retry_after")


async def test_credentials_that_open_no_session_are_named_in_the_row(
    agent: Agent, tenant: Tenant, jwt: str, vendor: FakeVendor
) -> None:
    vendor.api_key = "another key"
    assert (await agent.cli(jwt, "list")).json() == {"error": "vendor rejected credentials"}
    await agent.call(tenant.agent_key, "fake_list")
    assert {(row.source, row.error_code, row.credential_scope) for row in await rows()} == {
        ("cli", "vendor_rejected_credentials", "organization"),
        ("mcp", "vendor_rejected_credentials", "organization"),
    }


async def test_a_vendors_date_is_passed_on_as_seconds(
    agent: Agent, jwt: str, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)
    monkeypatch.setattr(session, "clock", SimpleNamespace(now=lambda: then))  # the rest keeps its time: tokens expire
    vendor.status, vendor.retry_after = 429, "Sun, 06 Nov 1994 08:50:07 GMT"
    answer = await agent.cli(jwt, "list")
    assert (answer.status_code, answer.headers["Retry-After"]) == (502, "30")


async def test_502_when_the_vendor_is_gone(agent: Agent, jwt: str, vendor: FakeVendor, tenant: Tenant) -> None:
    await in_thread(lambda: load_vendor("http://127.0.0.1:9/mcp"))
    answer = await agent.cli(jwt, "list")
    assert answer.status_code == 502
    assert "127.0.0.1" not in answer.text
    (row,) = await in_thread(lambda: list(RequestAuditEntry.objects.all()))
    assert (row.status, row.error_code, row.vendor) == ("error", "vendor_unavailable", "fake")


async def test_other_methods_and_media_types(agent: Agent, jwt: str) -> None:
    assert (await agent.http.get("/v1/fake/cli", headers=headers(jwt, {}))).status_code == 405
    text = {**headers(jwt, {}), "Content-Type": "text/plain"}
    assert (await agent.http.post("/v1/fake/cli", content=b"{}", headers=text)).status_code == 415


async def test_schema_lists_flat_commands_that_the_role_may_call(agent: Agent, tenant: Tenant) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    token = await in_thread(lambda: access_token(tenant))
    answer = await agent.http.get("/v1/fake/cli/schema", headers=headers(token, {}))
    assert answer.json() == {
        "vendor": "fake",
        "vendorName": "Fake",
        "commands": [
            {
                "command": "list",
                "description": "List things.",
                "flags": [{"name": "site", "type": "string", "required": False, "description": ""}],
            }
        ],
    }
    assert (await agent.http.get("/v1/unknown/cli/schema", headers=headers(token, {}))).status_code == 403
    assert (await agent.http.get("/v1/fake/cli/schema")).status_code == 401
