"""A change by an admin over the API counts for the very next call, although callers are kept in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orgs.models import Membership
from tests.api.oauth_ext.flow import Flow, make_flow
from tests.api.proxy.conftest import Agent
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread
from tests.fakes.vendor import FakeVendor

Admin = Callable[..., Awaitable[Any]]


@pytest.fixture
def admin(committed_cast: Cast) -> Admin:
    """One request of the owner, beside the loop."""
    api = Api(committed_cast)

    async def send(method: str, path: str, body: object = None) -> Any:
        answer = await in_thread(lambda: api.send("owner", method, path, body))
        assert answer.status_code < 300, (answer.status_code, answer.content)
        return answer

    return send


async def listed(agent: Agent, bearer: str) -> set[str]:
    answer = await agent.rpc(bearer, "tools/list")
    assert answer.status_code == 200, answer.text
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


async def is_refused(agent: Agent, bearer: str, tool: str) -> bool:
    answer = await agent.call(bearer, tool)
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["result"].get("isError"))


async def test_an_allowlist(agent: Agent, tenant: Tenant, vendor: FakeVendor, admin: Admin) -> None:
    key = tenant.agent_key
    assert await listed(agent, key) == {"fake_list", "fake_write", "fake_fail"}
    await admin("PUT", "/orgs/{org}/tool-access/fake/member", {"tools": ["fake_list"]})
    assert await is_refused(agent, key, "fake_write")
    assert await listed(agent, key) == {"fake_list"}
    discovered = await admin("GET", "/orgs/{org}/tool-access/fake/discover")
    marked = {tool["name"] for tool in discovered.json()["tools"] if "member" in tool["allowedRoles"]}
    assert marked == await listed(agent, key)
    await admin("DELETE", "/orgs/{org}/tool-access/fake/member")
    assert not await is_refused(agent, key, "fake_write")
    assert vendor.seen["tools/call"] == 1


async def test_a_service_clients_vendor_list(agent: Agent, tenant: Tenant, vendor: FakeVendor, admin: Admin) -> None:
    await in_thread(lambda: load_vendors("other"))
    path = f"/orgs/{{org}}/members/{tenant.client.client_id}/server-access"
    assert not await is_refused(agent, tenant.agent_key, "fake_list")
    await admin("PUT", path, {"vendors": ["other"]})
    assert await is_refused(agent, tenant.agent_key, "fake_list")
    await admin("PUT", f"{path}/fake")
    assert not await is_refused(agent, tenant.agent_key, "fake_list")
    await admin("DELETE", f"{path}/fake")
    assert await is_refused(agent, tenant.agent_key, "fake_list")
    assert vendor.seen["tools/call"] == 2


async def test_a_credential(agent: Agent, tenant: Tenant, vendor: FakeVendor, admin: Admin) -> None:
    assert not await is_refused(agent, tenant.agent_key, "fake_list")
    await admin("DELETE", "/orgs/{org}/credentials/fake")
    assert await is_refused(agent, tenant.agent_key, "fake_list")
    await admin("POST", "/orgs/{org}/credentials/fake", {"apiKey": "right-key"})
    assert not await is_refused(agent, tenant.agent_key, "fake_list")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/orgs/{{org}}/service-clients/{client}/agent-key"),
        ("DELETE", "/orgs/{{org}}/service-clients/{client}/agent-key"),
        ("DELETE", "/orgs/{{org}}/service-clients/{client}"),
        ("DELETE", "/orgs/{{org}}"),
    ],
)
async def test_what_ends_a_key(agent: Agent, tenant: Tenant, admin: Admin, method: str, path: str) -> None:
    assert not await is_refused(agent, tenant.agent_key, "fake_list")
    await admin(method, path.format(client=tenant.client.client_id))
    assert (await agent.rpc(tenant.agent_key, "tools/list")).status_code == 401


@pytest.mark.parametrize("path", ["/orgs/{{org}}/service-clients/{client}", "/orgs/{{org}}"])
async def test_what_ends_a_token(agent: Agent, tenant: Tenant, jwt: str, admin: Admin, path: str) -> None:
    assert (await agent.cli(jwt, "list")).status_code == 200
    await admin("DELETE", path.format(client=tenant.client.client_id))
    assert (await agent.cli(jwt, "list")).status_code == 401


@pytest.fixture
def flow(committed_cast: Cast, tenant: Tenant) -> Flow:
    """A client of the member's own."""
    return make_flow(committed_cast)


async def instructions(agent: Agent, bearer: str) -> str:
    return str((await agent.rpc(bearer, "initialize")).json()["result"]["instructions"])


async def test_a_token_from_before_anything_worked_works_as_soon_as_access_is_given(
    agent: Agent, tenant: Tenant, flow: Flow, admin: Admin, committed_cast: Cast
) -> None:
    bearer = (await in_thread(flow.tokens))["access_token"]
    place = f"http://testserver/orgs/{committed_cast.org.id}"
    assert await listed(agent, bearer) == set()
    why = f"You have no access to Fake. Ask for it at {place}/access-requests."
    assert why in await instructions(agent, bearer)
    await admin("DELETE", "/orgs/{org}/credentials/fake")
    why = f"No vendor is connected here: an admin of Acme can connect one at {place}/connections."
    assert why in await instructions(agent, bearer)
    await admin("PUT", f"/orgs/{{org}}/members/{committed_cast.user('member').id}/server-access/fake")
    assert await listed(agent, bearer) == set()
    assert why in await instructions(agent, bearer)
    await admin("POST", "/orgs/{org}/credentials/fake", {"apiKey": "right-key"})
    assert await listed(agent, bearer) == {"fake_list", "fake_write", "fake_fail"}
    assert "these vendors: Fake" in await instructions(agent, bearer)
    assert not await is_refused(agent, bearer, "fake_list")


async def test_a_token_for_another_vendor_says_so(
    agent: Agent, tenant: Tenant, flow: Flow, admin: Admin, committed_cast: Cast
) -> None:
    await in_thread(lambda: load_vendors("acme"))
    bearer = (await in_thread(lambda: flow.tokens(scope="mcp:acme")))["access_token"]
    said = await instructions(agent, bearer)
    assert "This token does not cover Fake" in said
    assert "Acme:" not in said  # a vendor that is not connected is not named


async def test_a_persons_grant(agent: Agent, tenant: Tenant, flow: Flow, admin: Admin, committed_cast: Cast) -> None:
    bearer = (await in_thread(flow.tokens))["access_token"]
    path = f"/orgs/{{org}}/members/{committed_cast.user('member').id}/server-access/fake"
    assert await listed(agent, bearer) == set()
    assert await is_refused(agent, bearer, "fake_list")
    await admin("PUT", path)
    assert not await is_refused(agent, bearer, "fake_list")
    await admin("DELETE", path)
    assert await is_refused(agent, bearer, "fake_list")
    await admin("PATCH", "/orgs/{org}/settings", {"defaultServerAccess": "all"})
    assert not await is_refused(agent, bearer, "fake_list")


async def test_a_removed_member_and_one_who_joins_again(
    agent: Agent, tenant: Tenant, flow: Flow, admin: Admin, committed_cast: Cast
) -> None:
    tokens = await in_thread(flow.tokens)
    member = committed_cast.user("member")
    assert (await agent.rpc(tokens["access_token"], "tools/list")).status_code == 200
    await admin("DELETE", f"/orgs/{{org}}/members/{member.id}")
    assert (await agent.rpc(tokens["access_token"], "tools/list")).status_code == 401
    await in_thread(lambda: Membership.objects.create(organization=committed_cast.org, user=member, role="member"))
    assert (await agent.rpc(tokens["access_token"], "tools/list")).status_code == 401
    assert (await in_thread(lambda: flow.refresh(tokens["refresh_token"]))).status_code == 400


async def test_a_member_who_leaves(agent: Agent, tenant: Tenant, flow: Flow, committed_cast: Cast) -> None:
    tokens = await in_thread(flow.tokens)
    assert (await agent.rpc(tokens["access_token"], "tools/list")).status_code == 200
    answer = await in_thread(lambda: Api(committed_cast).send("member", "DELETE", "/orgs/{org}/membership"))
    assert answer.status_code == 204
    assert (await agent.rpc(tokens["access_token"], "tools/list")).status_code == 401
    assert (await in_thread(lambda: flow.refresh(tokens["refresh_token"]))).status_code == 400


async def test_a_team_and_its_grant(
    agent: Agent, tenant: Tenant, flow: Flow, admin: Admin, committed_cast: Cast
) -> None:
    bearer = (await in_thread(flow.tokens))["access_token"]
    team = (await admin("POST", "/orgs/{org}/teams", {"name": "Ops"})).json()["id"]
    member = f"/orgs/{{org}}/teams/{team}/members/{committed_cast.user('member').id}"
    await admin("PUT", f"/orgs/{{org}}/teams/{team}/server-access/fake")
    assert await is_refused(agent, bearer, "fake_list")
    await admin("PUT", member)
    assert not await is_refused(agent, bearer, "fake_list")
    await admin("DELETE", member)
    assert await is_refused(agent, bearer, "fake_list")
    await admin("PUT", member)
    assert not await is_refused(agent, bearer, "fake_list")
    await admin("DELETE", f"/orgs/{{org}}/teams/{team}")
    assert await is_refused(agent, bearer, "fake_list")
