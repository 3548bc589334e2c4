"""Lists of allowed resources and prompts, of a role and of an agent: listed, read, completed, refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest

from oauth_ext.services.service_client_allowlists import set_tool_mode
from oauth_ext.services.service_client_item_lists import clear_client_item_list, set_client_item_list
from orgs.services.item_access import clear_item_list, set_item_list
from proxy.calls import decide, list_items
from proxy.protocol.item_addresses import exposed
from proxy.vendors import fair_scheduler
from proxy.views import change_streams
from tests.api.proxy.asking import named, session_of
from tests.api.proxy.conftest import Agent
from tests.api.proxy.items import both_eras, request
from tests.api.proxy.modern import PATHS, bearer_of
from tests.api.proxy.streams import Stream
from tests.api.proxy.traces import rows
from tests.factories.statements import statements
from tests.factories.tenant import Tenant, connect, load_vendor, make_tenant, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.item_vendor import ItemVendor
from tests.fakes.vendor import running_vendor

TEXT, NOTES, THING = "test://static-text", "file:///notes.md", "test://thing/{id}"


@pytest.fixture
async def vendor() -> AsyncIterator[ItemVendor]:
    """The vendor of the tenant, with resources and prompts."""
    async with running_vendor(ItemVendor) as running:
        assert isinstance(running, ItemVendor)
        yield running


async def allow(tenant: Tenant, kind: str, *entries: str, role: str = "member") -> None:
    await in_thread(
        lambda: set_item_list(
            actor=tenant.owner,
            organization=tenant.organization,
            vendor="fake",
            role=role,
            kind=kind,
            entries=entries,
        )
    )


async def reads(era: str, agent: Agent, bearer: str, address: str, path: str = "/v1/mcp") -> str:
    """ "ok", or the reason of the refusal."""
    uri = address if path != "/v1/mcp" else exposed("fake", address)
    answer = (await request(era, agent, bearer, "resources/read", {"uri": uri}, path=path)).json()
    return "ok" if "result" in answer else answer["error"]["data"]["reason"]


async def listed(era: str, agent: Agent, bearer: str, method: str, member: str, path: str) -> list[str]:
    answer = (await request(era, agent, bearer, method, path=path)).json()
    name = {"resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}[member]
    return [each[name].removeprefix("fake+") for each in answer["result"][member]] if "result" in answer else []


@both_eras
@pytest.mark.parametrize("path", PATHS)
async def test_a_list_of_resources_is_exact(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, era: str, path: str
) -> None:
    bearer = bearer_of(tenant, jwt, path)
    assert await reads(era, agent, bearer, NOTES, path) == "ok"
    for role in ("member", "owner"):
        await allow(tenant, "resources", TEXT, role=role)
    assert [await reads(era, agent, bearer, each, path) for each in (TEXT, NOTES, "test://thing/7")] == [
        *("ok", "item_not_allowed", "item_not_allowed")
    ]
    assert await listed(era, agent, bearer, "resources/list", "resources", path) == [TEXT]
    assert await listed(era, agent, bearer, "resources/templates/list", "resourceTemplates", path) == []
    # A list of resources says nothing about prompts.
    assert len(await listed(era, agent, bearer, "prompts/list", "prompts", path)) == 1
    assert [row.status for row in await rows() if row.item.endswith(NOTES)] == ["success", "denied"]


@both_eras
async def test_a_list_of_tools_closes_what_has_no_list_of_its_own(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    key = tenant.agent_key
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert [await reads(era, agent, key, each) for each in (TEXT, NOTES)] == ["item_not_allowed"] * 2
    await allow(tenant, "resources", NOTES)
    assert [await reads(era, agent, key, each) for each in (TEXT, NOTES)] == ["item_not_allowed", "ok"]
    assert await listed(era, agent, key, "resources/list", "resources", "/v1/mcp") == [NOTES]
    assert await gets(era, agent, key) == "item_not_allowed"
    await allow(tenant, "prompts", "greet")
    assert await gets(era, agent, key) == "ok"
    await allow(tenant, "resources")
    assert [await reads(era, agent, key, each) for each in (TEXT, NOTES)] == ["item_not_allowed"] * 2
    closed = await request(era, agent, key, "resources/list")
    assert closed.json()["error"]["code"] == -32601
    await in_thread(lambda: clear_item_list(**role_of(tenant), kind="resources"))
    assert await reads(era, agent, key, NOTES) == "item_not_allowed"


@both_eras
async def test_a_template_allows_what_is_made_of_it(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str) -> None:
    key = tenant.agent_key
    await allow(tenant, "resources", THING)
    addresses = ("test://thing/7", "test://thing/7/8", "test://thing/7?x", "test://things", TEXT, NOTES)
    assert [await reads(era, agent, key, each) for each in addresses] == ["ok", *["item_not_allowed"] * 5]
    assert await listed(era, agent, key, "resources/list", "resources", "/v1/mcp") == []
    assert await listed(era, agent, key, "resources/templates/list", "resourceTemplates", "/v1/mcp") == [THING]
    assert [await completes(era, agent, key, uri=each) for each in (f"fake+{THING}", "fake+test://other/{id}")] == [
        *("ok", "item_not_allowed")
    ]
    # By the vendor's own address the rule is the same.
    bare = await request(era, agent, key, "resources/read", {"uri": "test://thing/7"})
    assert "result" in bare.json()
    # A resource that the caller may not use is not there: a vendor's list and its templates are told to nobody else.
    for address in (NOTES, "test://other/7", "absent://x"):
        unknown = await request(era, agent, key, "resources/read", {"uri": address})
        code = -32602 if era == "modern" else -32002
        assert unknown.json()["error"] == {"code": code, "message": "Resource not found", "data": {"uri": address}}


@both_eras
async def test_a_hidden_resource_of_one_vendor_takes_no_address_from_another(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    """Otherwise "not found" would say that a vendor lists it."""
    vendor.lists["resources"] += [{"uri": "test://thing/7", "name": "Seven"}]
    await allow(tenant, "resources", NOTES)
    async with running_vendor(ItemVendor) as other:
        await in_thread(lambda: load_vendor(other.url, slug="other"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "other"))
        for address in ("test://thing/7", "test://thing/8"):
            found = await request(era, agent, tenant.agent_key, "resources/read", {"uri": address})
            assert found.json()["result"]["contents"][0]["uri"] == address
        assert (other.seen["resources/read"], vendor.seen["resources/read"]) == (2, 0)
        shared = await request(era, agent, tenant.agent_key, "resources/read", {"uri": NOTES})
        assert "Several vendors have this address" in shared.json()["error"]["message"]


@both_eras
async def test_a_list_of_prompts(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str) -> None:
    key = tenant.agent_key
    vendor.lists["prompts"] += [{"name": "part", "arguments": []}]
    await allow(tenant, "prompts", "part", "fake_greet")
    assert await listed(era, agent, key, "prompts/list", "prompts", "/v1/mcp") == ["fake_part"]
    assert [await gets(era, agent, key, name) for name in ("greet", "part")] == ["item_not_allowed", "ok"]
    assert [await completes(era, agent, key, name=f"fake_{name}") for name in ("greet", "part")] == [
        *("item_not_allowed", "ok")
    ]
    assert await reads(era, agent, key, NOTES) == "ok"
    denied = [row for row in await rows() if row.status == "denied"]
    assert [(row.kind, row.item, row.error_code) for row in denied] == [
        ("prompt", "fake_greet", "item_not_allowed"),
        ("completion", "fake_greet", "item_not_allowed"),
    ]


@both_eras
async def test_both_lists_count_and_only_the_own_agent(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    second = await in_thread(lambda: make_tenant(tenant.organization, tenant.owner, name="second bot"))
    await in_thread(lambda: connect(other_tenant.organization, other_tenant.owner))
    whose: dict[str, Any] = {"actor": tenant.owner, "organization": tenant.organization, "client": tenant.client}
    await in_thread(lambda: set_client_item_list(**whose, vendor="fake", kind="resources", entries=[NOTES, "test://x"]))
    keys = (tenant.agent_key, second.agent_key, other_tenant.agent_key)
    assert [await reads(era, agent, key, TEXT) for key in keys] == ["item_not_allowed", "ok", "ok"]
    assert [await reads(era, agent, key, NOTES) for key in keys] == ["ok"] * 3
    await allow(tenant, "resources", TEXT)
    assert [await reads(era, agent, key, TEXT) for key in keys] == ["item_not_allowed", "ok", "ok"]
    assert [await reads(era, agent, key, NOTES) for key in keys] == ["item_not_allowed", "item_not_allowed", "ok"]
    text = (await request(era, agent, tenant.agent_key, "resources/read", {"uri": f"fake+{TEXT}"})).json()
    assert "The service client build bot can use only some resources of Fake" in text["error"]["message"]
    await in_thread(lambda: clear_client_item_list(**whose, vendor="fake", kind="resources"))
    assert await reads(era, agent, tenant.agent_key, TEXT) == "ok"


async def test_lists_cost_a_known_caller_no_statement(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    async def counted(address: str) -> list[str]:
        with statements() as asked:
            await reads("earlier", agent, tenant.agent_key, address)
        # A new list of tools is recorded in the background.
        return [sql for sql in asked if "caller" in sql or "allowlist" in sql]

    vendor.tools = [{**each, **app_of(APP if each["name"] == "fake_list" else None)} for each in vendor.tools]
    assert len(await counted(NOTES)) > 0
    assert await counted(NOTES) == []
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    await allow(tenant, "resources", NOTES, THING)
    for address in (NOTES, "test://thing/7", APP, TEXT):
        await reads("earlier", agent, tenant.agent_key, address)
        assert await counted(address) == []


APP, OTHER_APP = "ui://board/main", "ui://board/other"


@both_eras
@pytest.mark.parametrize("form", ["object", "earlier"])
async def test_an_app_follows_its_tool(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str, form: str) -> None:
    key = tenant.agent_key
    vendor.lists["resources"] += [{"uri": OTHER_APP, "name": "Other"}]
    of_tool = dict(zip(("fake_list", "fake_write"), (APP, OTHER_APP), strict=True))
    vendor.tools = [{**each, **app_of(of_tool.get(each["name"]), form)} for each in vendor.tools]
    assert [await reads(era, agent, key, each) for each in (APP, OTHER_APP)] == ["ok", "ok"]
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert [await reads(era, agent, key, each) for each in (APP, OTHER_APP, TEXT)] == [
        *("ok", "item_not_allowed", "item_not_allowed")
    ]
    found = await listed(era, agent, key, "resources/list", "resources", "/v1/mcp")
    assert found == ["ui://fake+board/main"]
    assert await listed(era, agent, key, "resources/templates/list", "resourceTemplates", "/v1/mcp") == []
    # A list of resources neither opens nor closes an app of a tool.
    await allow(tenant, "resources", OTHER_APP, TEXT)
    assert [await reads(era, agent, key, each) for each in (APP, OTHER_APP, TEXT)] == ["ok", "item_not_allowed", "ok"]
    refused = (await request(era, agent, key, "resources/read", {"uri": "ui://fake+board/other"})).json()["error"]
    assert "isn't allowed to call fake_write" in refused["message"]


async def test_an_app_of_a_writing_tool_is_closed_to_a_read_only_agent(
    agent: Agent, tenant: Tenant, vendor: ItemVendor
) -> None:
    vendor.tools = [{**each, **app_of(APP if each["name"] == "fake_write" else None)} for each in vendor.tools]
    whose: dict[str, Any] = {"actor": tenant.owner, "organization": tenant.organization, "client": tenant.client}
    await in_thread(lambda: set_tool_mode(**whose, mode="read_only"))
    assert [await reads("earlier", agent, tenant.agent_key, each) for each in (APP, TEXT)] == [
        *("item_not_allowed", "ok")
    ]
    # Spellings that a vendor's parser may make the same address of.
    for other in ("UI://board/main", "ui://board/m%61in", "Ui://board/%6Dain"):
        assert await reads("earlier", agent, tenant.agent_key, other) == "item_not_allowed", other
    seen = vendor.seen["resources/read"]
    for address in ("fake+ ui://board/main", "fake+test://static-text ", "ui://fake+board/main "):
        answer = await agent.rpc(tenant.agent_key, "resources/read", {"uri": address})
        assert answer.json()["error"]["code"] == -32602, address
    assert vendor.seen["resources/read"] == seen


async def test_a_tool_opens_nothing_but_an_app(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    vendor.tools = [{**each, **app_of(NOTES if each["name"] == "fake_list" else None)} for each in vendor.tools]
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    assert await reads("earlier", agent, tenant.agent_key, NOTES) == "item_not_allowed"
    assert (await agent.rpc(tenant.agent_key, "resources/list")).json()["error"]["code"] == -32601


@both_eras
async def test_without_the_tools_of_a_vendor_its_apps_are_closed(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    """A vendor may have no tools at all: its other resources are listed and read as usual."""
    vendor.errors["tools/list"] = {"code": -32601, "message": "Method not found"}
    await allow(tenant, "resources", NOTES, APP)
    key = tenant.agent_key
    assert await listed(era, agent, key, "resources/list", "resources", "/v1/mcp") == [NOTES]
    assert [await reads(era, agent, key, each) for each in (NOTES, TEXT, APP)] == [
        *("ok", "item_not_allowed", "bad_vendor_response")
    ]


@both_eras
async def test_the_address_of_an_app_waits_for_a_vendor_whose_tools_are_not_known(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    """It leads to no other vendor meanwhile, and the answer says nothing of what the vendor lists."""
    vendor.errors["tools/list"] = {"code": -32603, "message": "busy"}
    await allow(tenant, "resources", NOTES)
    async with running_vendor(ItemVendor) as other:
        await in_thread(lambda: load_vendor(other.url, slug="other"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "other"))
        for address in (APP, "ui://absent"):
            waits = (await request(era, agent, tenant.agent_key, "resources/read", {"uri": address})).json()["error"]
            assert waits["data"] == {"vendor": "fake", "reason": "vendor_unavailable"}
            assert "are not known at the moment" in waits["message"]
        assert other.seen["resources/read"] + vendor.seen["resources/read"] == 0
        for address in (TEXT, "ui://other+board/main"):
            found = await request(era, agent, tenant.agent_key, "resources/read", {"uri": address})
            assert "result" in found.json()
        assert other.seen["resources/read"] == 2


@both_eras
async def test_what_is_announced(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str) -> None:
    async def announced() -> set[str]:
        asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        method, params = ("server/discover", {}) if era == "modern" else ("initialize", asked)
        answer = await request(era, agent, tenant.agent_key, method, params)
        return set(answer.json()["result"]["capabilities"]) & {"resources", "prompts", "completions"}

    assert await announced() == {"resources", "prompts", "completions"}
    await allow(tenant, "resources")
    assert await announced() == {"prompts", "completions"}
    await allow(tenant, "prompts")
    assert await announced() == set()
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    await in_thread(lambda: clear_item_list(**role_of(tenant), kind="resources"))
    assert await announced() == set()


@pytest.mark.django_db(transaction=True)
async def test_a_changed_list_is_told(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_streams, "LOOK_EVERY_S", 0.05)
    session = await session_of(agent, tenant.agent_key)
    await agent.rpc(tenant.agent_key, "resources/list", **named(session))
    async with Stream("/v1/mcp", tenant.agent_key, None, named(session), "GET") as stream:
        await allow(tenant, "resources", NOTES)
        assert (await stream.read() or {})["method"] == "notifications/resources/list_changed"
        await allow(tenant, "prompts", "greet")
        assert (await stream.read() or {})["method"] == "notifications/prompts/list_changed"


def app_of(address: str | None, form: str = "object") -> dict[str, Any]:
    if address is None:
        return {}
    return {"_meta": {"ui": {"resourceUri": address}} if form == "object" else {"ui/resourceUri": address}}


def role_of(tenant: Tenant) -> dict[str, Any]:
    return {"actor": tenant.owner, "organization": tenant.organization, "vendor": "fake", "role": "member"}


async def gets(era: str, agent: Agent, bearer: str, name: str = "greet") -> str:
    answer = (await request(era, agent, bearer, "prompts/get", {"name": f"fake_{name}"})).json()
    return "ok" if "result" in answer else answer["error"]["data"]["reason"]


async def completes(era: str, agent: Agent, bearer: str, **of: str) -> str:
    ref = {"type": "ref/resource" if "uri" in of else "ref/prompt", **of}
    params = {"ref": ref, "argument": {"name": "who", "value": "a"}}
    answer = (await request(era, agent, bearer, "completion/complete", params)).json()
    return "ok" if "result" in answer else answer["error"]["data"]["reason"]


async def test_many_templates_are_tried_beside_the_event_loop(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,500 short addresses are less than 64 KiB."""
    inline: list[int] = []
    usual = fair_scheduler.run_small_inline

    async def noted(owner: Any, work: Any, size_bytes: int, deadline: float | None = None) -> Any:
        if getattr(work, "func", None) is list_items._shown and size_bytes <= fair_scheduler.INLINE_BYTES:
            inline.append(size_bytes)
        return await usual(owner, work, size_bytes, deadline)

    monkeypatch.setattr(fair_scheduler, "run_small_inline", noted)
    vendor.lists["resources"], vendor.page_size = (
        [{"uri": f"a:{number}", "name": "x"} for number in range(1_500)],
        2_000,
    )
    await allow(tenant, "resources", "a:1")
    assert await listed("earlier", agent, tenant.agent_key, "resources/list", "resources", "/v1/mcp") == ["a:1"]
    assert len(inline) == 1
    await allow(tenant, "resources", "a:1", *(f"a:{number}/{{x}}" for number in range(49)))
    assert await listed("earlier", agent, tenant.agent_key, "resources/list", "resources", "/v1/mcp") == ["a:1"]
    assert len(inline) == 1


async def test_spellings_of_one_app_are_judged_once(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many addresses times many tools would take seconds."""
    judged: list[str] = []
    usual = decide.may_call_tool

    def noted(principal: Any, organization: Any, at: Any, name: str, *, is_read_only: bool) -> Any:
        judged.append(name)
        return usual(principal, organization, at, name, is_read_only=is_read_only)

    of_all = [f"ui://{''.join(letters)}" for letters in product(*(((each, f"%{ord(each):x}")) for each in "boardm"))]
    vendor.lists["resources"] = [{"uri": each, "name": "x"} for each in of_all]
    vendor.tools = [{**vendor.tools[0], "name": f"tool_{number}", **app_of("ui://boardm")} for number in range(50)]
    vendor.page_size = 100
    await in_thread(lambda: restrict_tools(tenant.organization, "other"))
    monkeypatch.setattr(decide, "may_call_tool", noted)
    assert await listed("earlier", agent, tenant.agent_key, "resources/list", "resources", "/v1/mcp") == []
    await allow(tenant, "resources", TEXT)
    assert await listed("earlier", agent, tenant.agent_key, "resources/list", "resources", "/v1/mcp") == []
    assert 50 <= len(judged) <= 200
