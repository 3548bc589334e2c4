"""Resources and templates at both endpoints and in both revisions: listed, found by address, read, refused."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_types import _v2026_07_28 as schema

from proxy.protocol import item_definitions
from proxy.protocol.item_kinds import ItemKind
from tests.api.proxy.conftest import Agent
from tests.api.proxy.items import both_eras, request
from tests.api.proxy.modern import PATHS, RESERVED, bearer_of
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant, connect, load_vendor, restrict_tools
from tests.factories.threads import in_thread
from tests.fakes.item_vendor import RAW_READ, ItemVendor
from tests.fakes.vendor import running_vendor

OWN = ["test://static-text", "file:///notes.md", "ui://board/main"]
EXPOSED = ["fake+test://static-text", "fake+file:///notes.md", "ui://fake+board/main"]


@pytest.fixture
async def vendor() -> AsyncIterator[ItemVendor]:
    """The vendor of the tenant, with resources and prompts."""
    async with running_vendor(ItemVendor) as running:
        assert isinstance(running, ItemVendor)
        yield running


@both_eras
@pytest.mark.parametrize("path", PATHS)
async def test_resources_are_listed_and_read(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, era: str, path: str
) -> None:
    bearer = bearer_of(tenant, jwt, path)
    listed = (await request(era, agent, bearer, "resources/list", path=path)).json()["result"]
    addresses = [each["uri"] for each in listed["resources"]]
    assert addresses == (EXPOSED if path == "/v1/mcp" else OWN)
    templates = (await request(era, agent, bearer, "resources/templates/list", path=path)).json()["result"]
    assert [each["uriTemplate"] for each in templates["resourceTemplates"]] == [
        "fake+test://thing/{id}" if path == "/v1/mcp" else "test://thing/{id}"
    ]
    for address, own in zip(addresses, OWN, strict=True):
        answer = await request(era, agent, bearer, "resources/read", {"uri": address}, path=path)
        assert answer.status_code == 200
        assert vendor.bodies[-1]["params"] == {"uri": own}
        (content,) = answer.json()["result"]["contents"]
        assert content == {"uri": address, "text": "café", "x": 1.5}
        assert '"x": 1.50' in answer.text or '"x":1.50' in answer.text
    if era == "modern":
        for found in (listed, templates, answer.json()["result"]):
            assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
            assert found["_meta"][RESERVED + "serverInfo"]["name"] == "mcp-gateway"
        schema.ListResourcesResult.model_validate(listed)
        schema.ListResourceTemplatesResult.model_validate(templates)
        schema.ReadResourceResult.model_validate(answer.json()["result"])
    kept = [(row.kind, row.item, row.tool, row.vendor, row.status) for row in await rows()]
    assert kept == [("resource", own, "", "fake", "success") for own in OWN]


async def test_a_long_page_is_read_beside_the_event_loop(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in: list[str] = []

    def page_of(kind: ItemKind, raw: bytes, read: Any = item_definitions.page_of) -> Any:
        read_in.append(threading.current_thread().name)
        return read(kind, raw)

    monkeypatch.setattr(item_definitions, "page_of", page_of)
    vendor.raw["resources/list"] = '{"resources":[%s{"uri":"test://x","name":"x"}]}' % ("{}," * 30_000)
    found = (await agent.rpc(tenant.agent_key, "resources/list")).json()["result"]["resources"]
    assert [each["uri"] for each in found] == ["fake+test://x"]
    assert [name[:9] for name in read_in] == ["long-work"]


@pytest.mark.parametrize("path", PATHS)
async def test_the_vendors_own_address_brings_its_own_bytes(
    agent: Agent, tenant: Tenant, jwt: str, vendor: ItemVendor, path: str
) -> None:
    for address in ("test://static-text", "test://thing/7"):
        answer = await agent.rpc(bearer_of(tenant, jwt, path), "resources/read", {"uri": address}, path=path)
        assert answer.text == '{"jsonrpc":"2.0","id":1,"result":' + RAW_READ % address + "}"


@pytest.mark.parametrize(
    "address",
    [
        "",
        7,
        "fake+test://" + "a" * 10_240,
        "fake+file:///a/../../etc/passwd",
        "fake+file:///a/%2e%2E/etc/passwd",
        "fake+file:///a/%252e%252e/etc/passwd",
        "fake+..",
        "file:///..\\..\\boot.ini",
        "test://a\nb",
    ],
    ids=lambda address: str(address)[:30],
)
@both_eras
async def test_addresses_that_no_vendor_may_see(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str, address: Any
) -> None:
    more = {"Mcp-Name": "=?base64?dGVzdDovL2EKYg==?="} if "\n" in str(address) and era == "modern" else {}
    answer = await request(era, agent, tenant.agent_key, "resources/read", {"uri": address}, **more)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
    assert vendor.seen["resources/read"] == 0
    (row,) = await rows()
    assert (row.kind, row.status, row.error_code, len(row.item) <= 512) == ("resource", "denied", "bad_arguments", True)


@both_eras
async def test_an_address_without_an_owner_is_not_found(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    for address in ("nobody://here", "absent+test://static-text", "test://thing/7/8", "v.fake+test://static-text"):
        answer = await request(era, agent, tenant.agent_key, "resources/read", {"uri": address})
        assert answer.status_code == 200
        found = answer.json()["error"]
        assert (found["code"], found["data"]) == (-32602 if era == "modern" else -32002, {"uri": address})
    assert vendor.seen["resources/read"] == 0
    assert {(row.kind, row.status, row.error_code) for row in await rows()} == {("resource", "denied", "unknown_item")}


@both_eras
async def test_another_organization_reads_nothing(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, vendor: ItemVendor, era: str
) -> None:
    await request(era, agent, tenant.agent_key, "resources/list")
    key = other_tenant.agent_key
    listed = await request(era, agent, key, "resources/list")
    assert (listed.status_code, listed.json()["error"]["code"]) == (404 if era == "modern" else 200, -32601)
    named = await request(era, agent, key, "resources/read", {"uri": "fake+test://static-text"})
    assert named.json()["error"]["data"]["reason"] == "no_credentials"
    bare = await request(era, agent, key, "resources/read", {"uri": "test://static-text"})
    assert bare.json()["error"]["code"] == -32601
    assert vendor.seen["resources/read"] == 0


@both_eras
async def test_one_address_at_two_vendors(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str) -> None:
    async with running_vendor(ItemVendor) as other:
        await in_thread(lambda: load_vendor(other.url, slug="9other", prefix="nine"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "9other"))
        listed = (await request(era, agent, tenant.agent_key, "resources/list")).json()["result"]["resources"]
        addresses = [each["uri"] for each in listed]
        assert addresses == [
            "v.9other+test://static-text",
            "v.9other+file:///notes.md",
            "ui://9other+board/main",
            *EXPOSED,
        ]
        refused = await request(era, agent, tenant.agent_key, "resources/read", {"uri": "test://static-text"})
        assert refused.json()["error"]["code"] == -32602
        assert "v.9other+test://static-text, fake+test://static-text" in refused.json()["error"]["message"]
        wrong = await request(era, agent, tenant.agent_key, "resources/read", {"uri": "9other+test://static-text"})
        assert "error" in wrong.json()
        assert other.seen["resources/read"] + vendor.seen["resources/read"] == 0
        for address in addresses:
            answer = await request(era, agent, tenant.agent_key, "resources/read", {"uri": address})
            assert answer.json()["result"]["contents"][0]["uri"] == address
        assert (other.seen["resources/read"], vendor.seen["resources/read"]) == (3, 3)


async def test_a_bare_address_waits_for_a_vendor_that_may_have_it(
    agent: Agent, tenant: Tenant, vendor: ItemVendor
) -> None:
    async with running_vendor(ItemVendor, api_key="another") as other:
        await in_thread(lambda: load_vendor(other.url, slug="other"))
        await in_thread(lambda: connect(tenant.organization, tenant.owner, "other"))
        refused = await agent.rpc(tenant.agent_key, "resources/read", {"uri": "test://static-text"})
        assert refused.json()["error"]["data"] == {"vendor": "other", "reason": "vendor_rejected_credentials"}
        assert vendor.seen["resources/read"] == 0
        named = await agent.rpc(tenant.agent_key, "resources/read", {"uri": "fake+test://static-text"})
        assert named.json()["result"]["contents"]


@both_eras
async def test_a_list_of_tools_closes_resources(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "fake_list"))
    listed = await request(era, agent, tenant.agent_key, "resources/list")
    assert listed.json()["error"]["code"] == -32601
    answer = await request(era, agent, tenant.agent_key, "resources/read", {"uri": "fake+test://static-text"})
    found = answer.json()["error"]
    assert (found["code"], found["data"]["reason"]) == (-32602, "item_not_allowed")
    assert vendor.seen["resources/read"] == 0
    (row,) = await rows()
    assert (row.kind, row.item, row.status, row.error_code) == (
        "resource",
        "fake+test://static-text",
        "denied",
        "item_not_allowed",
    )


async def test_a_list_of_another_role_or_vendor_closes_nothing(
    agent: Agent, tenant: Tenant, vendor: ItemVendor
) -> None:
    await in_thread(lambda: restrict_tools(tenant.organization, "x", role="admin"))
    await in_thread(lambda: restrict_tools(tenant.organization, "x", vendor="another"))
    answer = await agent.rpc(tenant.agent_key, "resources/read", {"uri": "fake+test://static-text"})
    assert answer.json()["result"]["contents"]


async def test_the_row_keeps_no_query(agent: Agent, tenant: Tenant, vendor: ItemVendor) -> None:
    address = "fake+https://me:secret@host.example/path?token=secret#secret"
    answer = await agent.rpc(tenant.agent_key, "resources/read", {"uri": address})
    assert answer.json()["result"]["contents"][0]["uri"] == address
    assert vendor.bodies[-1]["params"]["uri"] == address.removeprefix("fake+")
    (row,) = await rows()
    assert row.item == "https://host.example/path"


@both_eras
async def test_what_the_vendor_refuses(agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str) -> None:
    vendor.errors["resources/read"] = {"code": -32002, "message": "Resource not found", "data": {"uri": "test://x"}}
    answer = await request(era, agent, tenant.agent_key, "resources/read", {"uri": "fake+test://x"})
    assert answer.json()["error"] == {
        "code": -32602 if era == "modern" else -32002,
        "message": "Resource not found",
        "data": {"uri": "test://x"},
    }
    vendor.api_key = "another"
    answer = await request(era, agent, tenant.agent_key, "resources/read", {"uri": "fake+test://x"})
    assert answer.json()["error"]["data"] == {"vendor": "fake", "reason": "vendor_rejected_credentials"}
    assert [row.error_code for row in await rows()] == ["vendor_error", "vendor_rejected_credentials"]


@pytest.mark.parametrize("declared", [{"tools": {}}, {"tools": {}, "prompts": {}}, {"resources": None}], ids=json.dumps)
@both_eras
async def test_a_vendor_without_resources_is_not_asked_for_any(
    agent: Agent, tenant: Tenant, vendor: ItemVendor, era: str, declared: dict[str, Any]
) -> None:
    vendor.capabilities = declared
    for method, params in (
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "fake+test://static-text"}),
        ("resources/read", {"uri": "test://static-text"}),
    ):
        answer = await request(era, agent, tenant.agent_key, method, params)
        assert answer.status_code == (404 if era == "modern" else 200)
        assert answer.json()["error"]["code"] == -32601
    assert not any(method.startswith("resources/") for method in vendor.seen)
