"""Calls with a connection that people signed in to: renewal ahead, at the end, once, and its failures. Contract: 8"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from mcp_types import _v2025_11_25 as schema

from audit.models import AdminAuditEntry, RequestAuditEntry
from credentials.connection_refresh import FRESH, RETRY_AFTER, Claim, claim
from credentials.connection_sealing import open_access
from credentials.models import VendorConnection
from credentials.resolve import CredentialRef
from credentials.selectors import connection_ref, people_vendors, vendors_in_use, vendors_of_person
from credentials.services.vendor_revocations import send_revocations
from gateway.coordination import backend, epochs
from gateway.lib import clock
from proxy.caller_cache import CallerCache
from proxy.vendor_tokens import VendorTokens
from proxy.views import change_streams
from tests.api.oauth_ext.flow import make_flow
from tests.api.proxy import modern
from tests.api.proxy.asking import named, session_of
from tests.api.proxy.conftest import Agent, access_token
from tests.api.proxy.streams import Stream
from tests.factories.cast import Cast
from tests.factories.tenant import Tenant, make_tenant
from tests.factories.threads import in_thread
from tests.factories.vendor_oauth import connect_organization, connect_person, load_oauth_vendor
from tests.fakes.raw_vendor import OK, raw_vendor, says
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)


@pytest.fixture
def tenant(oauth_vendor: OAuthVendor, committed_cast: Cast) -> Tenant:
    """The first organization, signed in to the vendor."""
    cast = committed_cast
    load_oauth_vendor(oauth_vendor.mcp_url)
    connect_organization(cast.client("owner"), cast.org.id, oauth_vendor)
    return make_tenant(cast.org, cast.user("owner"))


@pytest.fixture
async def processes(tenant: Tenant) -> AsyncIterator[list[VendorTokens]]:
    """Two processes as far as the vendor can tell."""
    caches = [CallerCache(backend.current(), spread=lambda: 0.0) for _ in range(2)]
    made = [VendorTokens(cache) for cache in caches]
    yield made
    for tokens in made:
        await tokens.aclose()
    for cache in caches:
        await cache.aclose()


def person_token(cast: Cast, who: str) -> str:
    token: str = make_flow(cast, who).tokens()["access_token"]
    return token


def _row() -> VendorConnection:
    return VendorConnection.objects.select_related("membership").get()


def _make_due(*, ended: bool) -> CredentialRef:
    """The connection as a caller's rows hold it, with a token that is due or has ended."""
    now = clock.now()
    ends = now - timedelta(seconds=1) if ended else now + timedelta(minutes=5)
    VendorConnection.objects.update(refresh_at=now - timedelta(seconds=2), expires_at=ends)
    return connection_ref(_row())


def _bump(cast: Cast) -> None:
    backend.current().bump_epochs([epochs.organization(cast.org.id)])


make_due = sync_to_async(_make_due)
bump = sync_to_async(_bump)
row = sync_to_async(_row)


async def test_a_call_uses_the_connection(tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor) -> None:
    answer = await agent.call(tenant.agent_key, "signin_echo", words="grüße")
    assert answer.status_code == 200
    assert answer.json()["result"]["content"][0]["text"] == "grüße"


async def test_a_call_renews_a_token_that_has_ended(tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor) -> None:
    await make_due(ended=True)
    before = oauth_vendor.stats().get("refreshed", 0)
    answers = await asyncio.gather(*(agent.call(tenant.agent_key, "signin_echo", words=str(n)) for n in range(10)))
    assert [each.json()["result"]["content"][0]["text"] for each in answers] == [str(n) for n in range(10)]
    assert oauth_vendor.stats()["refreshed"] == before + 1
    stored = await row()
    assert stored.revision == 2
    assert stored.refreshed_at is not None
    assert stored.lease_id is None


@pytest.mark.parametrize("ended", [True, False])
async def test_fifty_callers_in_two_processes_ask_once(
    processes: list[VendorTokens], oauth_vendor: OAuthVendor, ended: bool
) -> None:
    held = await make_due(ended=ended)
    before = oauth_vendor.stats()
    oauth_vendor.control(refresh_pause_s=0.2)
    found = await asyncio.gather(*(processes[n % 2].current(held) for n in range(50)))
    after = oauth_vendor.stats()
    assert after["refresh_asked"] == before.get("refresh_asked", 0) + 1
    assert after.get("replayed", 0) == before.get("replayed", 0)
    current = await row()
    revisions = {each.revision for each in found if each is not None}
    assert len([each for each in found if each is not None]) == 50
    # Where the former token still works, nobody has to wait for the new one.
    assert revisions == ({2} if ended else revisions & {1, 2})
    assert current.revision == 2


async def test_a_caller_who_leaves_loses_no_token(processes: list[VendorTokens], oauth_vendor: OAuthVendor) -> None:
    held = await make_due(ended=True)
    oauth_vendor.control(refresh_pause_s=0.2)
    before = oauth_vendor.stats().get("refresh_asked", 0)
    caller = asyncio.ensure_future(processes[0].current(held))
    while oauth_vendor.stats().get("refresh_asked", 0) == before:
        await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await processes[0].aclose()
    assert (await row()).revision == 2


@pytest.mark.parametrize("fault", ["500", "429", "garbage"])
async def test_a_doubtful_answer_ends_nothing(
    processes: list[VendorTokens], oauth_vendor: OAuthVendor, fault: str
) -> None:
    held = await make_due(ended=False)
    oauth_vendor.control(refresh_fault=fault)
    found = await processes[0].current(held)
    assert found is not None
    assert (found.revision, found.needs_sign_in) == (1, False)
    stored = await row()
    assert stored.status == "connected"
    assert stored.state == "error"
    assert stored.problem
    assert stored.refresh_at is not None
    assert clock.now() < stored.refresh_at <= clock.now() + RETRY_AFTER
    # The next try succeeds with the token that was kept.
    oauth_vendor.control(refresh_fault="")
    again = await processes[0].current(await make_due(ended=True))
    assert again is not None
    assert again.revision == 2
    assert (await row()).state == "connected"


async def test_a_refusal_that_is_not_repeated_ends_nothing(
    processes: list[VendorTokens], oauth_vendor: OAuthVendor
) -> None:
    held = await make_due(ended=True)
    oauth_vendor.control(refresh_fault="once")
    before = oauth_vendor.stats().get("faulty", 0)
    found = await processes[0].current(held)
    assert found is not None
    assert (found.revision, found.needs_sign_in) == (2, False)
    assert oauth_vendor.stats()["faulty"] == before + 1
    assert (await row()).state == "connected"


async def test_a_server_that_answers_nothing_ends_nothing(processes: list[VendorTokens]) -> None:
    held = await make_due(ended=False)
    async with raw_vendor(says(b"")) as silent:
        await sync_to_async(VendorConnection.objects.update)(token_endpoint=silent.url)
        found = await processes[0].current(held)
        assert silent.connections
    assert found is not None
    assert (found.revision, found.needs_sign_in) == (1, False)
    # The call did not wait for the renewal, which notes its outcome a moment later.
    async with asyncio.timeout(20):
        while (stored := await row()).lease_id is not None:
            await asyncio.sleep(0.01)
    assert stored.state == "error"
    assert bytes(stored.sealed_refresh or b"")


async def test_a_token_that_the_vendor_ended_early_is_renewed(
    tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor
) -> None:
    assert (await agent.call(tenant.agent_key, "signin_echo", words="hi")).status_code == 200
    await sync_to_async(VendorConnection.objects.update)(connected_at=clock.now() - 2 * FRESH)
    oauth_vendor.end_access()
    answers = await asyncio.gather(*(agent.call(tenant.agent_key, "signin_echo", words=str(n)) for n in range(5)))
    assert [each.json()["result"]["content"][0]["text"] for each in answers] == [str(n) for n in range(5)]
    assert (await row()).revision == 2


async def test_so_it_is_for_a_list_of_tools(tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor) -> None:
    await sync_to_async(VendorConnection.objects.update)(connected_at=clock.now() - 2 * FRESH)
    oauth_vendor.end_access()
    listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
    assert "signin_echo" in [each["name"] for each in listed["tools"]]
    assert (await row()).revision == 2


async def test_a_refused_renewal_asks_for_a_sign_in(
    tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor, committed_cast: Cast
) -> None:
    assert (await agent.call(tenant.agent_key, "signin_echo", words="hi")).status_code == 200
    oauth_vendor.end_all()
    jwt = await sync_to_async(access_token)(tenant)
    # The vendor says so before the token's time: the call that meets the refusal asks for a new one.
    await sync_to_async(VendorConnection.objects.update)(connected_at=clock.now() - 2 * FRESH)
    for _ in range(2):
        answer = await agent.call(tenant.agent_key, "signin_echo", words="hi")
        assert answer.status_code == 200  # never 401: the client would sign in to the gateway again and again
        result = answer.json()["result"]
        assert result["isError"] is True
        address = f"http://testserver/orgs/{tenant.organization.id}/vendors/signin/settings"
        assert result["content"][0]["text"].endswith(address)
        cli = await agent.cli(jwt, "echo", {"words": "hi"}, vendor="signin")
        assert cli.status_code == 403
        assert address in cli.text
    stored = await row()
    assert stored.state == "expired"
    assert bytes(stored.sealed)
    events = await sync_to_async(list)(AdminAuditEntry.objects.values_list("event_type", flat=True))
    assert events.count("vendor.sign_in_needed") == 1
    # A new sign-in keeps the connection's id.
    await in_thread(lambda: connect_organization(committed_cast.client("owner"), tenant.organization.id, oauth_vendor))
    again = await row()
    assert (again.id, again.state) == (stored.id, "connected")
    answer = await agent.call(tenant.agent_key, "signin_echo", words="hi")
    assert answer.json()["result"]["content"][0]["text"] == "hi"


async def test_a_token_goes_to_no_other_address_than_it_was_issued_for(
    tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor
) -> None:
    async with raw_vendor(says(OK)) as other:
        await in_thread(lambda: load_oauth_vendor(other.url))
        answer = await agent.call(tenant.agent_key, "signin_echo", words="hi")
        assert answer.json()["result"]["isError"] is True
        assert "sign in again" in answer.json()["result"]["content"][0]["text"]
        assert not other.requests
    await in_thread(lambda: load_oauth_vendor(oauth_vendor.mcp_url))
    assert (await agent.call(tenant.agent_key, "signin_echo", words="hi")).json()["result"]["isError"] is False


async def test_a_process_that_died_holds_the_others_up_for_its_lease_only(
    processes: list[VendorTokens], oauth_vendor: OAuthVendor
) -> None:
    held = await make_due(ended=True)
    dead = await sync_to_async(claim)(held.id, held.revision)
    assert isinstance(dead, Claim)
    assert not isinstance(await sync_to_async(claim)(held.id, held.revision), Claim)
    await sync_to_async(VendorConnection.objects.update)(lease_until=clock.now() - timedelta(seconds=1))
    found = await processes[1].current(held)
    assert found is not None
    assert found.revision == 2


class TestPeople:
    """A person's own connection comes before the organization's, and is nobody else's."""

    @pytest.fixture
    def tokens(self, tenant: Tenant, committed_cast: Cast, oauth_vendor: OAuthVendor) -> dict[str, str]:
        cast = committed_cast
        oauth_vendor.control(scopes="read write")
        connect_person(cast.client("admin"), cast.org.id, oauth_vendor)
        return {who: person_token(cast, who) for who in ("admin", "owner")}

    async def test_each_call_uses_its_own(self, tokens: dict[str, str], agent: Agent, tenant: Tenant) -> None:
        found = {}
        for who, bearer in {**tokens, "bot": tenant.agent_key}.items():
            answer = await agent.call(bearer, "signin_scopes")
            found[who] = answer.json()["result"]["content"][0]["text"]
        assert found == {"admin": "read write", "owner": "read", "bot": "read"}

    async def test_a_removed_persons_next_call_is_refused(
        self, tokens: dict[str, str], agent: Agent, committed_cast: Cast, oauth_vendor: OAuthVendor
    ) -> None:
        cast, before = committed_cast, oauth_vendor.stats().get("grants_ended", 0)
        assert (await agent.call(tokens["admin"], "signin_scopes")).status_code == 200
        path = f"/api/orgs/{cast.org.id}/members/{cast.user('admin').pk}"
        await in_thread(lambda: cast.client("owner").delete(path))
        assert (await agent.call(tokens["admin"], "signin_scopes")).status_code == 401
        assert await sync_to_async(VendorConnection.objects.filter(membership__isnull=False).count)() == 0
        await sync_to_async(send_revocations)()
        assert oauth_vendor.stats()["grants_ended"] == before + 1

    @pytest.mark.parametrize("who", ["the person", "an admin, for all people"])
    async def test_after_its_end_the_next_call_does_not_use_it(
        self, tokens: dict[str, str], agent: Agent, committed_cast: Cast, oauth_vendor: OAuthVendor, who: str
    ) -> None:
        cast, before = committed_cast, oauth_vendor.stats().get("grants_ended", 0)
        assert (await agent.call(tokens["admin"], "signin_scopes")).json()["result"]["isError"] is False
        await sync_to_async(cast.org.credentials.all().delete)()
        own, rules = "/api/profile/vendor-connections/signin", "vendor-connections/signin/rules"
        if who == "the person":
            await in_thread(lambda: cast.client("admin").delete(f"{own}?org_id={cast.org.id}"))
        else:
            body = {"peopleMayConnect": False}
            path = f"/api/orgs/{cast.org.id}/{rules}"
            await in_thread(lambda: cast.client("owner").put(path, body, content_type="application/json"))
        answer = (await agent.call(tokens["admin"], "signin_scopes")).json()["result"]
        assert answer["isError"] is True
        own_page = "/profile/connections" in answer["content"][0]["text"]
        assert own_page is (who == "the person"), "who may not connect is not sent there"
        await sync_to_async(send_revocations)()
        assert oauth_vendor.stats()["grants_ended"] == before + 2, "the organization's, and the person's"


class TestStepUp:
    """A call that needs more scopes says which, and the next sign-in asks for them."""

    async def test_the_organizations(
        self, tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor, committed_cast: Cast
    ) -> None:
        text = await self._refused(agent, tenant.agent_key)
        assert "requires more scopes for this call: write." in text
        assert text.endswith(f"/orgs/{tenant.organization.id}/vendors/signin/settings")
        assert (await row()).wanted_scope_list == ["write"]
        browser, org_id = await in_thread(lambda: committed_cast.client("owner")), committed_cast.org.id
        shown = await in_thread(lambda: browser.get(f"/orgs/{org_id}/vendors/signin/settings").content.decode())
        assert "A call needed more scopes: <code>write</code>" in shown
        [listed] = (await in_thread(lambda: browser.get(f"/api/orgs/{org_id}/vendor-connections"))).json()
        assert (listed["scopes"], listed["wantedScopes"]) == (["read"], ["write"])
        await in_thread(lambda: connect_organization(browser, org_id, oauth_vendor))
        stored = await row()
        assert (stored.scope_list, stored.wanted_scopes) == (["read", "write"], "")
        answer = await agent.call(tenant.agent_key, "signin_write")
        assert answer.json()["result"]["content"][0]["text"] == "written"

    async def test_a_persons_own(
        self, tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor, committed_cast: Cast
    ) -> None:
        cast = committed_cast
        await in_thread(lambda: connect_person(cast.client("admin"), cast.org.id, oauth_vendor))
        bearer = await sync_to_async(person_token)(cast, "admin")
        assert "/profile/connections?" in await self._refused(agent, bearer)
        cli = await agent.cli(bearer, "write", {}, vendor="signin")
        assert cli.status_code == 403
        assert "requires more scopes for this call: write." in cli.json()["error"]
        rows = await sync_to_async(lambda: list(VendorConnection.objects.all()))()
        assert {each.scope.value: each.wanted_scopes for each in rows} == {"organization": "", "person": "write"}

    async def test_the_rules_stay_in_force(
        self, tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor, committed_cast: Cast
    ) -> None:
        browser, org_id = await in_thread(lambda: committed_cast.client("owner")), committed_cast.org.id
        rules = {"peopleMayConnect": True, "scopes": ["read"]}
        path = f"/api/orgs/{org_id}/vendor-connections/signin/rules"
        await in_thread(lambda: browser.put(path, rules, content_type="application/json"))
        await self._refused(agent, tenant.agent_key)
        await in_thread(lambda: connect_organization(browser, org_id, oauth_vendor))
        assert (await row()).scope_list == ["read"]

    async def test_a_token_among_the_scopes_is_not_shown(
        self, tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor
    ) -> None:
        token = await sync_to_async(lambda: open_access(VendorConnection.objects.get()))()
        oauth_vendor.control(wanted=f"write x-{token}")
        assert token not in await self._refused(agent, tenant.agent_key)
        assert (await row()).wanted_scopes == "write"

    async def test_a_list_that_needs_them_says_so_to_the_next_sign_in(
        self, tenant: Tenant, agent: Agent, oauth_vendor: OAuthVendor
    ) -> None:
        oauth_vendor.control(refused='"method":"tools/list"')
        listed = (await agent.rpc(tenant.agent_key, "tools/list")).json()["result"]
        assert listed["tools"] == []
        assert (await row()).wanted_scope_list == ["write"]

    async def _refused(self, agent: Agent, bearer: str) -> str:
        answer = await agent.call(bearer, "signin_write")
        assert answer.status_code == 200
        assert answer.json()["result"]["isError"] is True
        text: str = answer.json()["result"]["content"][0]["text"]
        return text


class TestAskedToConnect:
    """A client that can open pages is asked once to let its person connect; all others get the text."""

    URL = modern.meta(clientCapabilities={"elicitation": {"url": {}}})

    @pytest.fixture
    def bearer(self, tenant: Tenant, committed_cast: Cast) -> str:
        tenant.organization.credentials.all().delete()
        return person_token(committed_cast, "admin")

    async def test_once_and_then_by_text(self, bearer: str, agent: Agent, tenant: Tenant) -> None:
        page = f"http://testserver/profile/connections?org_id={tenant.organization.id}&vendor=signin"
        asked = (await modern.call(agent, bearer, "signin_echo", {"words": "hi"}, meta=self.URL)).json()["result"]
        assert asked["resultType"] == "input_required"
        assert asked["inputRequests"]["connect"]["params"]["url"] == page
        assert "content" not in asked
        for action in ("accept", "decline", "cancel"):
            params = {"name": "signin_echo", "arguments": {"words": "hi"}}
            again = {**params, "inputResponses": {"connect": {"action": action}}}
            told = (await modern.ask(agent, bearer, "tools/call", again, meta=self.URL)).json()["result"]
            assert (told["resultType"], told["isError"]) == ("complete", True)
            assert told["content"][0]["text"].endswith(page)

    async def test_a_repetition_after_the_sign_in_works(
        self, bearer: str, agent: Agent, committed_cast: Cast, oauth_vendor: OAuthVendor
    ) -> None:
        cast = committed_cast
        await modern.call(agent, bearer, "signin_echo", {"words": "hi"}, meta=self.URL)
        await in_thread(lambda: connect_person(cast.client("admin"), cast.org.id, oauth_vendor))
        params = {"name": "signin_echo", "arguments": {"words": "hi"}}
        again = {**params, "inputResponses": {"connect": {"action": "accept"}}}
        answer = await modern.ask(agent, bearer, "tools/call", again, meta=self.URL)
        assert answer.json()["result"]["content"][0]["text"] == "hi"

    async def test_nobody_else_is_asked(self, bearer: str, agent: Agent, tenant: Tenant) -> None:
        """A client with forms only; an agent, which is no person."""
        forms = modern.meta(clientCapabilities={"elicitation": {}})
        for who, can in ((bearer, forms), (bearer, modern.meta()), (tenant.agent_key, self.URL)):
            told = (await modern.call(agent, who, "signin_echo", {"words": "hi"}, meta=can)).json()["result"]
            assert (told["resultType"], told["isError"]) == ("complete", True)


async def _until(stream: Stream, method: str) -> dict[str, Any]:
    """The first message of the method."""
    while True:
        message = await stream.read()
        assert message is not None
        if message.get("method") == method:
            return message


class TestSentToAPage:
    """The same for clients of 2025-11-25: the error -32042, once more with each repetition."""

    CAN: dict[str, Any] = {"elicitation": {"url": {}}}

    @pytest.fixture
    def bearer(self, tenant: Tenant, committed_cast: Cast) -> str:
        tenant.organization.credentials.all().delete()
        return person_token(committed_cast, "admin")

    async def _error(self, agent: Agent, bearer: str, session: str) -> dict[str, Any]:
        params = {"name": "signin_echo", "arguments": {"words": "hi"}}
        found = await agent.rpc(bearer, "tools/call", params, **named(session))
        error: dict[str, Any] = found.json()["error"]
        return error

    async def test_until_the_person_has_signed_in(
        self, bearer: str, agent: Agent, tenant: Tenant, committed_cast: Cast, oauth_vendor: OAuthVendor
    ) -> None:
        cast, session = committed_cast, await session_of(agent, bearer, self.CAN)
        error = await self._error(agent, bearer, session)
        [asked] = error["data"]["elicitations"]
        page = f"http://testserver/profile/connections?org_id={tenant.organization.id}&vendor=signin"
        assert (error["code"], asked["mode"], asked["url"]) == (-32042, "url", page)
        assert asked["message"] == error["message"] == "Sign In is not connected. You can connect it for yourself."
        schema.URLElicitationRequiredError.model_validate({"jsonrpc": "2.0", "id": 1, "error": error})
        assert await self._error(agent, bearer, session) == error, "a client knows the question again"
        other = await self._error(agent, bearer, await session_of(agent, bearer, self.CAN))
        assert other["data"]["elicitations"][0]["elicitationId"] != asked["elicitationId"]
        rows = await in_thread(lambda: set(RequestAuditEntry.objects.values_list("status", "error_code")))
        assert rows == {("denied", "no_credentials")}
        await in_thread(lambda: connect_person(cast.client("admin"), cast.org.id, oauth_vendor))
        params = {"name": "signin_echo", "arguments": {"words": "hi"}}
        found = await agent.rpc(bearer, "tools/call", params, **named(session))
        assert found.json()["result"]["content"][0]["text"] == "hi"

    async def test_the_stream_of_the_session_says_when(
        self,
        bearer: str,
        agent: Agent,
        committed_cast: Cast,
        oauth_vendor: OAuthVendor,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(change_streams, "LOOK_EVERY_S", 0.05)
        cast, session = committed_cast, await session_of(agent, bearer, self.CAN)
        other = await session_of(agent, bearer, {"elicitation": {}})
        error = await self._error(agent, bearer, session)
        async with (
            Stream("/v1/mcp", bearer, {}, named(session), method="GET") as stream,
            Stream("/v1/mcp", bearer, {}, named(other), method="GET") as without,
        ):
            await in_thread(lambda: connect_person(cast.client("admin"), cast.org.id, oauth_vendor))
            told = await _until(stream, "notifications/elicitation/complete")
            assert told["params"] == {"elicitationId": error["data"]["elicitations"][0]["elicitationId"]}
            schema.ElicitationCompleteNotification.model_validate(told)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await _until(without, "notifications/elicitation/complete")

    async def test_nobody_else(self, bearer: str, agent: Agent, tenant: Tenant) -> None:
        """A client with forms only, one without a session; an agent, which is no person."""
        forms = await session_of(agent, bearer, {"elicitation": {}})
        of_agent = await session_of(agent, tenant.agent_key, self.CAN)
        for who, session in ((bearer, forms), (bearer, None), (tenant.agent_key, of_agent)):
            params = {"name": "signin_echo", "arguments": {"words": "hi"}}
            told = (await agent.rpc(who, "tools/call", params, **named(session))).json()["result"]
            assert told["isError"] is True


async def test_a_call_before_a_client_is_registered_names_the_operator(
    tenant: Tenant, agent: Agent, committed_cast: Cast, oauth_vendor: OAuthVendor
) -> None:
    cast = committed_cast

    def person_without_a_way_in() -> str:
        load_oauth_vendor(oauth_vendor.mcp_url, 'client_id_env = "VENDOR_SIGNIN_CLIENT_ID"')
        cast.org.credentials.all().delete()
        return person_token(cast, "admin")

    told = (await agent.call(await in_thread(person_without_a_way_in), "signin_echo")).json()["result"]
    assert told["isError"] is True
    said = told["content"][0]["text"]
    assert said.startswith("Sign In is not connected. An operator of this service must register a client there first.")
    assert "/profile/connections" not in said


class TestPersonOnly:
    """A vendor without a connection of the organization."""

    @pytest.fixture
    def tokens(self, tenant: Tenant, oauth_vendor: OAuthVendor, committed_cast: Cast) -> dict[str, str]:
        cast = committed_cast
        load_oauth_vendor(oauth_vendor.mcp_url, 'connections = ["person"]')
        cast.org.credentials.all().delete()
        return {**{who: person_token(cast, who) for who in ("admin", "owner")}, "bot": tenant.agent_key}

    async def test_the_list_says_that_it_is_not_connected(
        self, tokens: dict[str, str], agent: Agent, committed_cast: Cast, oauth_vendor: OAuthVendor
    ) -> None:
        cast = committed_cast
        assert await self._listed(agent, tokens["admin"]) == ([], {"signin": "no_credentials"})
        assert await self._listed(agent, tokens["bot"]) == ([], {}), "an agent cannot connect it"
        await in_thread(lambda: connect_person(cast.client("admin"), cast.org.id, oauth_vendor))
        assert await self._listed(agent, tokens["admin"]) == (["signin_echo", "signin_scopes", "signin_write"], {})
        assert await self._listed(agent, tokens["owner"]) == ([], {"signin": "no_credentials"})
        oauth_vendor.end_all()
        await make_due(ended=True)
        await bump(cast)
        assert await self._listed(agent, tokens["admin"]) == ([], {"signin": "no_credentials"})

    async def test_it_counts_as_connected(
        self, tokens: dict[str, str], committed_cast: Cast, oauth_vendor: OAuthVendor
    ) -> None:
        cast = committed_cast
        assert await sync_to_async(people_vendors)(cast.org) == []
        await in_thread(lambda: connect_person(cast.client("admin"), cast.org.id, oauth_vendor))
        assert await sync_to_async(people_vendors)(cast.org) == ["signin"]
        assert await sync_to_async(people_vendors)(cast.other_org) == []
        assert await sync_to_async(vendors_in_use)() == {"signin"}
        found = {who: await sync_to_async(vendors_of_person)(cast.user(who)) for who in ("admin", "owner")}
        assert found == {"admin": {"signin"}, "owner": set()}

    async def _listed(self, agent: Agent, bearer: str) -> tuple[list[str], dict[str, str]]:
        result = (await agent.rpc(bearer, "tools/list")).json()["result"]
        return [each["name"] for each in result["tools"]], result.get("_meta", {}).get("gateway/unavailable", {})


async def test_without_any_connection_the_person_is_told_where_to_connect(
    agent: Agent, tenant: Tenant, committed_cast: Cast
) -> None:
    await sync_to_async(VendorConnection.objects.all().delete)()
    await sync_to_async(tenant.organization.credentials.all().delete)()
    bearer = await sync_to_async(person_token)(committed_cast, "admin")
    answer = await agent.call(bearer, "signin_echo", words="hi")
    assert answer.status_code == 200
    result: dict[str, Any] = answer.json()["result"]
    assert result["isError"] is True
    page = f"http://testserver/profile/connections?org_id={tenant.organization.id}&vendor=signin"
    assert result["content"][0]["text"].endswith(page)


@pytest.fixture(autouse=True)
def _no_faults(oauth_vendor: OAuthVendor) -> Iterator[None]:
    yield
    oauth_vendor.control(refresh_fault="", refresh_pause_s=0.0, scopes="")
