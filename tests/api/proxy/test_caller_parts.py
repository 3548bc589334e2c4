"""A process sees each change of a caller at its next call, loads what changed and nothing else, in few statements.

`elsewhere` is the caller cache of a process that had no part in the change. No test waits for an age to pass.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine

from audit.actor import system
from credentials.models import Credential
from credentials.services.credentials import delete_credential
from gateway.coordination import epochs
from gateway.coordination.returns import Returns
from gateway.lib import clock
from oauth_ext.bearer import ExpiredBearer, InvalidBearer
from oauth_ext.models import AgentKey, Client, TokenFamily
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.cleanup import remove_expired_rows
from oauth_ext.services.deactivation import deactivate_person
from oauth_ext.services.revocation import revoke_token
from oauth_ext.services.service_client_allowlists import set_client_allowlist, set_tool_mode
from oauth_ext.services.service_client_changes import change_service_client
from oauth_ext.services.service_client_item_lists import set_client_item_list
from oauth_ext.services.service_client_vendors import replace_client_vendors
from oauth_ext.services.service_clients import delete_service_client, rotate_client_secret
from orgs.allowed_items import AllowedItems
from orgs.roles import Role
from orgs.services import members, organizations, profile, server_access, teams
from orgs.services.identities import person_for_identity
from orgs.services.item_access import set_item_list
from orgs.services.tool_access import set_allowlist
from proxy import freshness, runtime
from proxy.caller import Caller
from proxy.caller_cache import CallerCache
from tests.api.oauth_ext.flow import make_flow
from tests.api.proxy.conftest import Agent, StandingClock, access_token
from tests.factories.cast import ISSUER, Cast
from tests.factories.catalog import load_vendors
from tests.factories.statements import statements
from tests.factories.tenant import Tenant, make_tenant
from tests.factories.threads import in_thread

ADDRESS = "127.0.0.1"


class Scene:
    """The member, in a team, with a token of an app, and a service client; the owner changes things."""

    def __init__(self, cast: Cast, tenant: Tenant) -> None:
        self.cast, self.tenant, self.org = cast, tenant, cast.org
        self.owner, self.member = cast.user("owner"), cast.user("member")
        self.by_owner: dict[str, Any] = {"actor": self.owner, "organization": self.org}
        self.team = teams.create_team(name="Ops", **self.by_owner)
        # Without a name, the person goes by the address.
        profile.update_profile(user=self.member, display_name="", first_name="", last_name="")
        teams.add_team_member(team_id=self.team.id, user_id=self.member.id, **self.by_owner)
        self.person_token = make_flow(cast).tokens()["access_token"]
        self.service_token = access_token(tenant)

    def sign_in_with_new_address(self) -> None:
        claims = {"email": "new@example.com", "email_verified": True}
        person_for_identity(issuer=ISSUER, sub="member", claims=claims, refresh_token="")

    def end_family(self) -> None:
        """Its time comes while a token of it lives."""
        TokenFamily.objects.update(expires_at=clock.now())
        remove_expired_rows(now=clock.now())


@pytest.fixture
async def scene(agent: Agent, tenant: Tenant, committed_cast: Cast) -> Scene:
    return await in_thread(lambda: Scene(committed_cast, tenant))


@pytest.fixture
async def elsewhere(agent: Agent) -> AsyncIterator[CallerCache]:
    made = CallerCache(runtime.current().store)
    yield made
    await made.aclose()


async def next_call(cache: CallerCache, bearer: str) -> Caller:
    """The caller after authentication and admission."""
    caller = await cache.get(bearer, ADDRESS)
    current = await runtime.current().store.read_epochs(caller.epoch_names)
    return await cache.revalidated(bearer, caller, current)


Work = Callable[[Scene], object]
ENDS: dict[str, Work] = {
    "revoked token": lambda on: revoke_token(token=on.person_token, client=None),
    "removed member": lambda on: members.remove_member(user_id=on.member.id, **on.by_owner),
    "member who left": lambda on: members.leave_organization(actor=on.member, organization=on.org),
    "deactivated person": lambda on: deactivate_person(actor=system("test"), user_id=on.member.id),
    "family at its end": lambda on: on.end_family(),
    "deleted organization": lambda on: organizations.delete_organization(**on.by_owner),
}
ENDS_OF_SERVICE: dict[str, Work] = {
    "revoked token": lambda on: revoke_token(token=on.service_token, client=None),
    "rotated secret": lambda on: rotate_client_secret(actor=on.owner, client=on.tenant.client),
    "deleted client": lambda on: delete_service_client(actor=on.owner, client=on.tenant.client),
    "deleted organization": lambda on: organizations.delete_organization(**on.by_owner),
}
ENDS_OF_KEY: dict[str, Work] = {
    "revoked key": lambda on: revoke_agent_key(actor=on.owner, client=on.tenant.client),
    "replaced key": lambda on: mint_agent_key(actor=on.owner, client=on.tenant.client),
    "creator deactivated": lambda on: deactivate_person(actor=system("test"), user_id=on.owner.id),
}


@pytest.mark.parametrize("kind", ENDS)
async def test_what_ends_a_persons_token(scene: Scene, elsewhere: CallerCache, kind: str) -> None:
    await next_call(elsewhere, scene.person_token)
    await next_call(elsewhere, scene.tenant.agent_key)
    await in_thread(lambda: ENDS[kind](scene))
    with pytest.raises(InvalidBearer):
        await next_call(elsewhere, scene.person_token)
    if kind != "deleted organization":
        assert await next_call(elsewhere, scene.tenant.agent_key)


@pytest.mark.parametrize("kind", ENDS_OF_SERVICE)
async def test_what_ends_a_service_clients_token(scene: Scene, elsewhere: CallerCache, kind: str) -> None:
    await next_call(elsewhere, scene.service_token)
    await in_thread(lambda: ENDS_OF_SERVICE[kind](scene))
    with pytest.raises(InvalidBearer):
        await next_call(elsewhere, scene.service_token)


@pytest.mark.parametrize("kind", ENDS_OF_KEY)
async def test_what_ends_an_agent_key(scene: Scene, elsewhere: CallerCache, kind: str) -> None:
    await next_call(elsewhere, scene.tenant.agent_key)
    await in_thread(lambda: ENDS_OF_KEY[kind](scene))
    with pytest.raises(InvalidBearer):
        await next_call(elsewhere, scene.tenant.agent_key)


@pytest.mark.parametrize("bearer", ["person_token", "service_token", "agent key"])
async def test_what_ends_by_time_alone(scene: Scene, elsewhere: CallerCache, bearer: str) -> None:
    text = scene.tenant.agent_key if bearer == "agent key" else getattr(scene, bearer)
    soon = clock.now() + timedelta(minutes=5)
    if bearer == "agent key":
        await in_thread(lambda: Client.objects.filter(pk=scene.tenant.client.pk).update(expires_at=soon))
    await next_call(elsewhere, text)
    with time_machine.travel(soon - timedelta(seconds=5)):
        assert await next_call(elsewhere, text)
    with time_machine.travel(soon + timedelta(hours=1)), pytest.raises(InvalidBearer) as refused:
        await next_call(elsewhere, text)
    assert isinstance(refused.value, ExpiredBearer) == (bearer != "agent key")


async def test_a_key_that_was_rotated_with_an_overlap_ends_by_time_alone(scene: Scene, elsewhere: CallerCache) -> None:
    old, client = scene.tenant.agent_key, scene.tenant.client
    before = await next_call(elsewhere, old)
    new = await in_thread(lambda: mint_agent_key(actor=scene.owner, client=client, overlap_hours=1).agent_key)
    ends_at = clock.now() + timedelta(hours=1)
    both = [await next_call(elsewhere, bearer) for bearer in (old, new)]
    assert both[0].own.expires_at_s < before.own.expires_at_s == both[1].own.expires_at_s
    with statements() as asked, time_machine.travel(ends_at - timedelta(seconds=10)):
        assert await next_call(elsewhere, old)
    assert asked == [], "it is known until then"
    with time_machine.travel(ends_at + timedelta(seconds=1)):
        with pytest.raises(InvalidBearer):
            await next_call(elsewhere, old)
        assert await next_call(elsewhere, new)


async def test_uses_are_noted_for_the_key_that_was_used(scene: Scene, elsewhere: CallerCache) -> None:
    client = scene.tenant.client
    new = await in_thread(lambda: mint_agent_key(actor=scene.owner, client=client, overlap_hours=24).agent_key)
    await next_call(elsewhere, scene.tenant.agent_key)
    await elsewhere.flush_last_used()
    rows = AgentKey.objects.filter(client=client)
    assert not await in_thread(lambda: rows.get(ends_at=None).last_used_at)
    assert await in_thread(lambda: rows.get(ends_at__isnull=False).last_used_at)
    await next_call(elsewhere, new)
    await elsewhere.flush_last_used()
    assert await in_thread(lambda: rows.get(ends_at=None).last_used_at)


OWN: dict[str, tuple[Work, Callable[[Caller], object], object]] = {
    "role": (
        lambda on: members.change_role(user_id=on.member.id, role=Role.ADMIN, **on.by_owner),
        lambda caller: caller.principal.role,
        Role.ADMIN,
    ),
    "team left": (
        lambda on: teams.remove_team_member(team_id=on.team.id, user_id=on.member.id, **on.by_owner),
        lambda caller: caller.principal.team_ids,
        (),
    ),
    "team deleted": (
        lambda on: teams.delete_team(team_id=on.team.id, **on.by_owner),
        lambda caller: caller.principal.team_ids,
        (),
    ),
    "server access": (
        lambda on: server_access.add_member_vendor(user_id=on.member.id, vendor="fake", **on.by_owner),
        lambda caller: caller.principal.granted_vendors,
        {"fake"},
    ),
    "server access of the team": (
        lambda on: server_access.add_team_vendor(team_id=on.team.id, vendor="fake", **on.by_owner),
        lambda caller: caller.principal.granted_vendors,
        {"fake"},
    ),
    "name": (
        lambda on: profile.update_profile(user=on.member, display_name="Mo"),
        lambda caller: caller.principal.label,
        "Mo",
    ),
    "address": (
        lambda on: on.sign_in_with_new_address(),
        lambda caller: caller.principal.label,
        "new@example.com",
    ),
}
SHARED: dict[str, tuple[Work, Callable[[Caller], object], object]] = {
    "name": (
        lambda on: organizations.rename_organization(name="New", **on.by_owner),
        lambda caller: caller.organization.name,
        "New",
    ),
    "default access": (
        lambda on: organizations.update_settings(default_server_access="all", **on.by_owner),
        lambda caller: caller.organization.default_access_all,
        True,
    ),
    "credential": (
        lambda on: delete_credential(actor=on.owner, credential=Credential.objects.get()),
        lambda caller: caller.organization.credentials,
        {},
    ),
    "allowlist": (
        lambda on: set_allowlist(vendor="fake", role="member", tools=["list"], **on.by_owner),
        lambda caller: caller.organization.allowlists,
        {("fake", "member"): {"list"}},
    ),
    "list of resources": (
        lambda on: set_item_list(vendor="fake", role="member", kind="resources", entries=["a:b"], **on.by_owner),
        lambda caller: caller.organization.item_lists,
        {("fake", "member", "resources"): AllowedItems(frozenset({"a:b"}))},
    ),
    "catalog": (
        lambda on: load_vendors("other"),
        lambda caller: sorted(caller.catalog.by_slug),
        ["fake", "other"],
    ),
}


@pytest.mark.parametrize("kind", OWN)
async def test_a_change_of_the_callers_own_rows(scene: Scene, elsewhere: CallerCache, kind: str) -> None:
    work, seen, after = OWN[kind]
    before = await next_call(elsewhere, scene.person_token)
    other = await next_call(elsewhere, scene.service_token)
    assert seen(before) != after
    await in_thread(lambda: work(scene))
    changed = await next_call(elsewhere, scene.person_token)
    assert seen(changed) == after
    assert changed.own is not before.own
    assert (await next_call(elsewhere, scene.service_token)).own is other.own


@pytest.mark.parametrize("kind", SHARED)
async def test_a_change_of_a_shared_part_is_loaded_once_for_all(
    scene: Scene, elsewhere: CallerCache, kind: str
) -> None:
    work, seen, after = SHARED[kind]
    bearers = [scene.person_token, scene.service_token, scene.tenant.agent_key]
    before = [await next_call(elsewhere, bearer) for bearer in bearers]
    assert seen(before[0]) != after
    await in_thread(lambda: work(scene))
    with statements() as asked:
        changed = [await next_call(elsewhere, bearer) for bearer in bearers]
    assert len(asked) == 1, asked
    assert [seen(caller) for caller in changed] == [after] * 3
    assert [caller.own for caller in changed] == [caller.own for caller in before]
    assert len({id(caller.organization) for caller in changed}) == len({id(caller.catalog) for caller in changed}) == 1


async def test_a_list_of_vendors_of_a_service_client(scene: Scene, elsewhere: CallerCache) -> None:
    assert (await next_call(elsewhere, scene.service_token)).principal.granted_vendors is None
    await in_thread(lambda: replace_client_vendors(client=scene.tenant.client, vendors=["fake"], **scene.by_owner))
    assert (await next_call(elsewhere, scene.service_token)).principal.granted_vendors == {"fake"}


async def test_the_lists_of_tools_of_a_service_client(scene: Scene, elsewhere: CallerCache) -> None:
    before = await next_call(elsewhere, scene.service_token)
    assert (before.principal.own_allowlists, before.principal.is_read_only) == (None, False)
    whose = {"client": scene.tenant.client, **scene.by_owner}
    await in_thread(lambda: set_client_allowlist(vendor="fake", tools=["list"], **whose))
    with statements() as asked:
        changed = await next_call(elsewhere, scene.service_token)
    assert changed.principal.own_allowlists == {"fake": {"list"}}
    assert len(asked) == 1, asked
    await in_thread(lambda: set_tool_mode(mode="read_only", **whose))
    assert (await next_call(elsewhere, scene.service_token)).principal.is_read_only


async def test_the_lists_of_items_and_the_short_list_of_a_service_client(scene: Scene, elsewhere: CallerCache) -> None:
    before = (await next_call(elsewhere, scene.service_token)).principal
    assert (before.own_item_lists, before.lists_compactly) == (None, False)
    whose = {"client": scene.tenant.client, **scene.by_owner}
    await in_thread(lambda: set_client_item_list(vendor="fake", kind="prompts", entries=["greet"], **whose))
    with statements() as asked:
        changed = (await next_call(elsewhere, scene.service_token)).principal
    assert changed.own_item_lists == {("fake", "prompts"): AllowedItems(frozenset({"greet"}))}
    assert len(asked) == 1, asked
    await in_thread(
        lambda: change_service_client(actor=scene.owner, client=scene.tenant.client, changes={"lists_compactly": True})
    )
    with statements() as asked:
        assert (await next_call(elsewhere, scene.service_token)).principal.lists_compactly
    assert len(asked) == 1, asked


# --- statements of a cold call ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_key", [False, True])
async def test_a_cold_caller_costs_at_most_three_statements(
    scene: Scene, elsewhere: CallerCache, committed_cast: Cast, is_key: bool
) -> None:
    """The catalog is loaded; the signing keys are read by a token of another organization, as they are every 10 s."""
    org, owner = committed_cast.other_org, committed_cast.user("other_owner")
    made = await in_thread(lambda: [make_tenant(org, owner, name=name) for name in ("first", "second")])
    tokens = await in_thread(lambda: [access_token(each) for each in made])
    bearers = [each.agent_key for each in made] if is_key else tokens
    await next_call(elsewhere, scene.service_token)
    for bearer, expected in zip(bearers, (3, 2) if is_key else (2, 1), strict=True):
        with statements() as asked:
            await next_call(elsewhere, bearer)
        assert len(asked) == expected, asked
    with statements() as asked:
        for bearer in bearers:
            await next_call(elsewhere, bearer)
    assert asked == []


async def test_uses_of_many_clients_are_written_together(
    scene: Scene, elsewhere: CallerCache, committed_cast: Cast
) -> None:
    made = await in_thread(lambda: [make_tenant(scene.org, scene.owner, name=f"bot {n}") for n in range(6)])
    for each in made:
        await next_call(elsewhere, each.agent_key)
    with statements() as asked:
        await elsewhere.flush_last_used()
    assert sum(sql.startswith("UPDATE") for sql in asked) == 2
    used = await in_thread(lambda: list(Client.objects.filter(name__startswith="bot").values_list("last_used_at")))
    assert len(used) == 6
    assert all(moment is not None for (moment,) in used)


# --- a store that may have come back with less ------------------------------------------------------------------------


def test_what_was_loaded_before_the_store_was_lost_is_soon_loaded_again(caller_clock: StandingClock) -> None:
    """Redis may have lost the last bumps: its epochs confirm what is older for half a minute at most."""
    store: Any = SimpleNamespace(returns=Returns())
    judge = freshness.Freshness(store, max_age_s=900.0)
    caller_clock.now_s = 1_000.0
    until_s = judge.until_s(900.0, 0.5)
    assert until_s == 900.0 + 900.0 * 0.875
    assert judge.is_confirmed_by_epochs(900.0, until_s, 0.5)
    for returned_s in (100.0, 990.0, 1_000.0):
        store.returns.add(returned_s)
    assert judge.is_confirmed_by_epochs(900.0, until_s, 0.5)
    caller_clock.now_s = 990.0 + freshness.REWOUND_AGE_S / 2
    assert not judge.is_confirmed_by_epochs(900.0, until_s, 0.5)
    assert judge.is_confirmed_by_epochs(991.0, until_s, 0.5), "lost once since, and a little later"
    assert judge.is_confirmed_by_epochs(1_000.0, until_s, 0.5), "loaded after"
    caller_clock.now_s = until_s
    assert not judge.is_confirmed_by_epochs(1_000.0, until_s, 0.5)


async def test_a_bump_that_the_store_lost_is_made_up_for_by_a_new_load(
    scene: Scene, elsewhere: CallerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = SimpleNamespace(returns=Returns())
    elsewhere.freshness = freshness.Freshness(store, max_age_s=900.0)
    key = scene.tenant.agent_key
    before = await next_call(elsewhere, key)
    await in_thread(lambda: Client.objects.filter(pk=scene.tenant.client.pk).delete())
    assert await next_call(elsewhere, key) is before, "no epoch changed"
    store.returns.add(time.monotonic())
    monkeypatch.setattr(freshness, "REWOUND_AGE_S", 0.0)
    with pytest.raises(InvalidBearer):
        await next_call(elsewhere, key)


async def test_an_organization_is_known_by_the_epoch_of_its_id(scene: Scene, elsewhere: CallerCache) -> None:
    caller = await next_call(elsewhere, scene.person_token)
    assert caller.epoch_names == (
        epochs.subject(str(scene.member.id)),
        epochs.organization(scene.org.id),
        epochs.CATALOG,
    )
    assert caller.organization.org_id == uuid.UUID(str(scene.org.id))
