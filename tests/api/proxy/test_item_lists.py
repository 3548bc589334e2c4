"""Lists of allowed resources and prompts, of a role and of an agent: listed, read, completed, refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orgs.services.item_access import set_item_list
from tests.api.proxy.conftest import Agent
from tests.api.proxy.items import both_eras, request
from tests.api.proxy.modern import PATHS, bearer_of
from tests.api.proxy.traces import rows
from tests.factories.tenant import Tenant
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
    uri = address if path != "/v1/mcp" else f"fake+{address}"
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
