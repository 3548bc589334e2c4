"""A person asks for a vendor, an admin gives it until a time, and from that second on calls are refused again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.urls import reverse

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.models import ServiceClientVendor
from oauth_ext.services.service_client_vendors import add_client_vendor
from oauth_ext.tasks import remove_ended_access as remove_ended_access_of_clients
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from orgs.services.server_access import add_member_vendor, add_team_vendor
from orgs.tasks import remove_ended_access
from proxy import runtime
from proxy.caller import Caller
from proxy.caller_cache import CallerCache
from tests.api.oauth_ext.flow import make_flow
from tests.api.proxy.conftest import Agent, access_token
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.statements import statements
from tests.factories.tenant import Tenant, connect, load_vendor
from tests.factories.threads import in_thread

ADDRESS = "127.0.0.1"
HALF_AN_HOUR = timedelta(minutes=30)


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    with time_machine.travel(moment):
        yield


@pytest.fixture
async def person_token(agent: Agent, tenant: Tenant, committed_cast: Cast) -> str:
    """The member's. The second organization has its own member with access to the same vendor."""

    def make() -> str:
        other = Membership.objects.get(user=committed_cast.user("other_owner"))
        connect(committed_cast.other_org, committed_cast.user("other_owner"))
        ServerAccess.objects.create(organization=committed_cast.other_org, membership=other, vendor="fake")
        token: str = make_flow(committed_cast).tokens()["access_token"]
        return token

    return await in_thread(make)


async def outcome(agent: Agent, bearer: str) -> str:
    """`called`, or the refusal."""
    answer = (await agent.call(bearer, "fake_list")).json()["result"]
    return answer["content"][0]["text"] if answer.get("isError") else "called"


def events(cast: Cast) -> list[tuple[str, str, str]]:
    rows = AdminAuditEntry.objects.filter(org_id=cast.org.id, event_type__regex="^(server_access|access_request)")
    return list(rows.order_by("timestamp", "id").values_list("event_type", "actor_label", "target_label"))


async def test_from_the_request_to_the_end(agent: Agent, person_token: str, committed_cast: Cast) -> None:
    api, end = Api(committed_cast), clock.whole_milliseconds(clock.now()) + HALF_AN_HOUR
    refused = await outcome(agent, person_token)
    assert f"http://testserver/orgs/{committed_cast.org.id}/access-requests?vendor=fake" in refused

    def ask_and_approve() -> dict[str, Any]:
        made = api.send("member", "POST", "/orgs/{org}/access-requests", {"vendor": "fake", "reason": "On call"})
        assert made.status_code == 201, made.content
        path = f"/orgs/{{org}}/access-requests/{made.json()['id']}/approve"
        decided = api.send("admin", "POST", path, {"expiresAt": end.isoformat()})
        assert decided.status_code == 200, decided.content
        body: dict[str, Any] = decided.json()
        return body

    decided = await in_thread(ask_and_approve)
    assert (decided["status"], decided["expiresAt"]) == ("approved", clock.rfc3339(end))
    assert await outcome(agent, person_token) == "called"
    with at(end - timedelta(milliseconds=200)):
        assert await outcome(agent, person_token) == "called"
    with at(end):
        assert "no access to Fake" in await outcome(agent, person_token)
        # No job was needed for that. It writes the log, once.
        assert [await in_thread(remove_ended_access) for _ in range(2)] == [1, 0]
    assert await in_thread(lambda: events(committed_cast)) == [
        ("access_request.created", "Member", "Member"),
        ("access_request.approved", "Admin", "Member"),
        ("server_access.granted", "Admin", "Member"),
        ("server_access.expired", "System (vendor access)", "Member"),
    ]
    assert await in_thread(ServerAccess.objects.count) == 1, "the other organization's"


async def test_the_command_line_names_the_page_too(
    agent: Agent, tenant: Tenant, person_token: str, committed_cast: Cast
) -> None:
    page = reverse("orgs:access-requests", args=[committed_cast.org.id])
    refused = await agent.cli(person_token, "list")
    assert refused.status_code == 403
    assert refused.json()["error"].endswith(f" Ask for it at http://testserver{page}?vendor=fake")
    await in_thread(lambda: add_client_vendor(client=tenant.client, vendor="other", **by_owner(committed_cast)))
    # A service client opens no page.
    token = await in_thread(lambda: access_token(tenant))
    assert "http" not in (await agent.cli(token, "list")).json()["error"]


def by_owner(cast: Cast) -> dict[str, Any]:
    load_vendor("http://127.0.0.1:9/mcp", slug="other")
    return {"actor": cast.user("owner"), "organization": cast.org}


# --- loaded callers ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def elsewhere(agent: Agent) -> AsyncIterator[CallerCache]:
    """A process that had no part in the change."""
    made = CallerCache(runtime.current().store)
    yield made
    await made.aclose()


async def next_call(cache: CallerCache, bearer: str) -> Caller:
    """The caller after authentication and admission."""
    caller = await cache.get(bearer, ADDRESS)
    current = await runtime.current().store.read_epochs(caller.epoch_names)
    return await cache.revalidated(bearer, caller, current)


def give(cast: Cast, holder: str, end: datetime | None) -> None:
    user, team = cast.user("member"), Team.objects.filter(organization=cast.org).first()
    if team is None:
        team = Team.objects.create(organization=cast.org, name="Ops")
        TeamMembership.objects.create(team=team, membership=Membership.objects.get(user=user, organization=cast.org))
    given = {"vendor": "fake", "expires_at": end, "actor": cast.user("owner"), "organization": cast.org}
    if holder == "team":
        add_team_vendor(team_id=team.id, **given)
    else:
        add_member_vendor(user_id=user.id, **given)


async def test_an_end_costs_a_loaded_caller_no_statement(
    elsewhere: CallerCache, person_token: str, committed_cast: Cast
) -> None:
    end = clock.whole_milliseconds(clock.now()) + HALF_AN_HOUR
    await in_thread(lambda: give(committed_cast, "team", end))
    with at(end - timedelta(seconds=1)):
        before = await next_call(elsewhere, person_token)
        assert before.principal.granted_vendors == {"fake"}
        assert await next_call(elsewhere, person_token) is before
    with at(end), statements() as asked:
        after = await next_call(elsewhere, person_token)
        assert after.principal.granted_vendors == frozenset()
        assert await next_call(elsewhere, person_token) is after
    assert asked == []
    assert after.own.access_ends == ()


async def test_an_end_between_authentication_and_admission_counts(
    elsewhere: CallerCache, person_token: str, committed_cast: Cast
) -> None:
    end = clock.whole_milliseconds(clock.now()) + HALF_AN_HOUR
    await in_thread(lambda: give(committed_cast, "member", end))
    store = runtime.current().store
    for are_readable in (True, False):
        with at(end - timedelta(seconds=20)):
            caller = await elsewhere.get(person_token, ADDRESS)
        assert caller.principal.granted_vendors == {"fake"}
        current = await store.read_epochs(caller.epoch_names) if are_readable else None
        with at(end):
            later = await elsewhere.revalidated(person_token, caller, current)
        assert later.principal.granted_vendors == frozenset()
        elsewhere._callers.clear()


@pytest.mark.parametrize("later", ["member", "team"])
async def test_the_later_of_two_ends_counts(
    elsewhere: CallerCache, person_token: str, committed_cast: Cast, later: str
) -> None:
    end = clock.whole_milliseconds(clock.now()) + timedelta(minutes=10)
    earlier = "team" if later == "member" else "member"
    await in_thread(lambda: give(committed_cast, earlier, end))
    await in_thread(lambda: give(committed_cast, later, end + timedelta(minutes=10)))
    await next_call(elsewhere, person_token)
    for minutes, vendors in ((5, {"fake"}), (15, {"fake"}), (20, set())):
        with at(end + timedelta(minutes=minutes - 10)):
            assert (await next_call(elsewhere, person_token)).principal.granted_vendors == vendors
    await in_thread(lambda: give(committed_cast, later, None))
    with at(end + timedelta(minutes=25)):
        assert (await next_call(elsewhere, person_token)).principal.granted_vendors == {"fake"}


async def test_a_service_client_stays_restricted_after_the_end(
    agent: Agent, elsewhere: CallerCache, tenant: Tenant, person_token: str, committed_cast: Cast
) -> None:
    end, key = clock.whole_milliseconds(clock.now()) + HALF_AN_HOUR, tenant.agent_key
    given = {"actor": committed_cast.user("owner"), "organization": committed_cast.org, "client": tenant.client}
    assert (await next_call(elsewhere, key)).principal.granted_vendors is None
    await in_thread(lambda: add_client_vendor(vendor="fake", expires_at=end, **given))
    assert (await next_call(elsewhere, key)).principal.granted_vendors == {"fake"}
    with at(end):
        assert (await next_call(elsewhere, key)).principal.granted_vendors == frozenset()
        assert "no access to Fake" in await outcome(agent, key)
        assert await in_thread(remove_ended_access) == 0
        assert [await in_thread(remove_ended_access_of_clients) for _ in range(2)] == [1, 0]
        assert "no access to Fake" in await outcome(agent, key)
    assert not await in_thread(ServiceClientVendor.objects.exists)
    assert (await in_thread(lambda: events(committed_cast)))[-1] == (
        *("server_access.expired", "System (vendor access)"),
        tenant.client.name,
    )
