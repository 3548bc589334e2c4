"""The end of a person: what ends at once, what stays, and that nothing comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from typing import Never

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from audit.actor import Actor, system
from audit.models import AdminAuditEntry
from gateway.coordination import backend
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib.errors import Conflict
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AgentKey, RememberedConsent, TokenFamily
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.deactivation import deactivate_person, reactivate_person
from oauth_ext.services.service_clients import create_service_client
from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role
from orgs.selectors import may_end_membership, people_who_may
from orgs.services.members import leave_organization
from tests.api.oauth_ext.flow import Flow, make_flow
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once

ACTOR = Actor(id="system", label="System (test)")


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def tokens(flow: Flow) -> dict[str, str]:
    answer = flow.redeem(flow.code())
    assert answer.status_code == 200, answer.content
    found: dict[str, str] = json.loads(answer.content)
    return found


def agent_key(actor: User, organization: Organization, name: str) -> str:
    client = create_service_client(actor=actor, organization=organization, name=name).client
    return mint_agent_key(actor=actor, client=client).agent_key


def is_refused(bearer: str) -> bool:
    try:
        load_identity(bearer)
    except InvalidBearer:
        return True
    return False


def test_everything_of_one_person_ends_and_nothing_of_another(cast: Cast, epochs_to_bump: list[str]) -> None:
    flows = {who: make_flow(cast, who) for who in ("admin", "owner")}
    given = {who: tokens(flow) for who, flow in flows.items()}
    pages = {who: cast.client(who) for who in flows}
    keys = {who: agent_key(cast.user(who), cast.org, f"Agent of {who}") for who in flows}
    elsewhere = agent_key(cast.user("other_owner"), cast.other_org, "Elsewhere")
    epochs_to_bump.clear()
    ended = deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    assert (ended.token_families, len(ended.agent_keys), len(ended.kept_keys)) == (1, 1, 0)
    assert f"subject:{cast.user('admin').pk}" in epochs_to_bump
    assert f"subject:{ended.agent_keys[0].client.subject}" in epochs_to_bump
    for who, over in (("admin", True), ("owner", False)):
        assert is_refused(given[who]["access_token"]) is over
        assert is_refused(keys[who]) is over
        assert (pages[who].get(f"/orgs/{cast.org.id}/people").status_code == 302) is over
        assert (pages[who].get("/api/profile").status_code == 401) is over
        assert (flows[who].refresh(given[who]["refresh_token"]).status_code == 400) is over
    assert not is_refused(elsewhere)
    assert not RememberedConsent.objects.filter(user=cast.user("admin")).exists()
    row = AdminAuditEntry.objects.get(event_type="member.deactivated")
    assert (row.org_id, row.actor_id, row.target_id) == (cast.org.id, "system", str(cast.user("admin").pk))
    assert AdminAuditEntry.objects.filter(event_type="agent_key.revoked", org_id=cast.org.id).count() == 1


@pytest.mark.parametrize("successor", ["admin", "owner"])
def test_a_rotated_key_ends_and_a_colleagues_new_key_stays(cast: Cast, successor: str) -> None:
    client = create_service_client(actor=cast.user("admin"), organization=cast.org, name="Nightly").client
    old = mint_agent_key(actor=cast.user("admin"), client=client).agent_key
    new = mint_agent_key(actor=cast.user(successor), client=client, overlap_hours=24).agent_key
    assert not is_refused(old)
    ended = deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    assert is_refused(old)
    assert is_refused(new) is (successor == "admin")
    assert len(ended.agent_keys) == (2 if successor == "admin" else 1)
    revoked = AdminAuditEntry.objects.filter(event_type="agent_key.revoked", org_id=cast.org.id)
    assert revoked.count() == len(ended.agent_keys)


def test_what_ended_stays_ended_when_the_person_comes_back(cast: Cast) -> None:
    flow, page = make_flow(cast, "admin"), cast.client("admin")
    given, key = tokens(flow), agent_key(cast.user("admin"), cast.org, "Agent")
    User.objects.filter(pk=cast.user("admin").pk).update(is_staff=True)
    Identity.objects.update(refresh_sealed=b"sealed", refresh_key_id="k")
    deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    person = reactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    assert person.is_active
    assert not person.is_staff
    kept = Identity.objects.exclude(refresh_key_id="").values_list("sub", flat=True)
    assert set(kept) == {"owner", "member", "other_owner", "stranger"}, "the provider's token of this person is gone"
    assert page.get("/profile").status_code == 302
    assert is_refused(given["access_token"])
    assert is_refused(key)
    assert flow.refresh(given["refresh_token"]).status_code == 400
    again = Browser()
    again.force_login(person, backend="orgs.signin.backend.IdentityBackend")
    assert again.get(f"/orgs/{cast.org.id}/people").status_code == 200
    assert AdminAuditEntry.objects.filter(event_type="member.reactivated", org_id=cast.org.id).count() == 1


def test_it_happens_once(cast: Cast) -> None:
    with pytest.raises(Conflict, match="is active"):
        reactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    with pytest.raises(Conflict, match="already deactivated"):
        deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    assert AdminAuditEntry.objects.filter(event_type="member.deactivated").count() == 1


def test_the_command_says_what_ended_and_what_is_left(cast: Cast) -> None:
    key = agent_key(cast.user("owner"), cast.org, "Nightly")
    said = run("deactivate_user", "Owner@example.com")
    assert "owner@example.com" in said
    assert "Ended: agent key" in said
    assert "Nightly (svc_" in said
    assert "was shown its secret" in said
    assert f"Warning: Acme ({cast.org.pk}) no longer has an active owner." in said
    assert is_refused(key)
    assert key not in said
    assert "may sign in again" in run("reactivate_user", "owner@example.com")


def test_the_command_says_when_redis_has_not_taken_what_ended(
    committed_cast: Cast, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(names: Sequence[str]) -> Never:
        raise CoordinationUnavailable("away")

    assert "Redis" not in run("deactivate_user", str(committed_cast.user("admin").pk))
    settings.REDIS_URL = settings.REDIS_URL or "redis://127.0.0.1:9/0"
    monkeypatch.setattr(backend.current(), "bump_epochs", is_away)
    assert "Redis has not been reached yet" in run("deactivate_user", "Owner@example.com")
    assert not User.objects.get(pk=committed_cast.user("owner").pk).is_active


def test_agent_keys_may_stay_with_a_warning(cast: Cast) -> None:
    key = agent_key(cast.user("admin"), cast.org, "Nightly")
    said = run("deactivate_user", str(cast.user("admin").pk), "--keep-agent-keys")
    assert "keeps working" in said
    assert not is_refused(key)
    assert "no longer has an active owner" not in said


def test_a_key_of_an_organization_that_the_person_left_ends_too(cast: Cast) -> None:
    key = agent_key(cast.user("admin"), cast.org, "Nightly")
    leave_organization(actor=cast.user("admin"), organization=cast.org)
    deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    assert is_refused(key)


@pytest.mark.parametrize("command", ["deactivate_user", "reactivate_user", "revoke_staff"])
def test_nobody_and_several_are_refused(cast: Cast, command: str) -> None:
    User.objects.create_user(email="ADMIN@example.com")
    with pytest.raises(CommandError, match="no one with the address"):
        run(command, "none@example.com")
    with pytest.raises(CommandError, match="Several people have the address") as refusal:
        run(command, "admin@example.com")
    assert str(cast.user("admin").pk) in str(refusal.value)
    assert User.objects.filter(is_active=False).count() == 0


def test_a_deactivated_owner_is_no_owner_to_rely_on(cast: Cast) -> None:
    second = Membership.objects.create(organization=cast.org, user=cast.user("stranger"), role=Role.OWNER.value)
    own = Membership.objects.get(user=cast.user("owner"))
    assert may_end_membership(own)
    assert deactivate_person(actor=ACTOR, user_id=second.user_id).without_owner == []
    assert not may_end_membership(own)
    assert people_who_may(cast.org, Role.OWNER) == ["Owner"]


def test_a_request_that_was_let_in_before_changes_nothing_after(cast: Cast) -> None:
    client = create_service_client(actor=cast.user("admin"), organization=cast.org, name="Nightly").client
    deactivate_person(actor=ACTOR, user_id=cast.user("admin").pk)
    with pytest.raises(Exception, match="Not found"):
        mint_agent_key(actor=cast.user("admin"), client=client)
    assert not AgentKey.objects.exists()


def test_no_token_survives_a_refresh_at_the_same_moment(committed_cast: Cast) -> None:
    flow = make_flow(committed_cast, "admin")
    refresh_token = tokens(flow)["refresh_token"]
    user_id = committed_cast.user("admin").pk
    bearers: list[str] = []

    def refresh() -> None:
        answer = flow.refresh(refresh_token)
        if answer.status_code == 200:
            bearers.append(json.loads(answer.content)["access_token"])

    results = at_once(*[refresh] * 3, lambda: deactivate_person(actor=system("test"), user_id=user_id))
    assert [fault for fault in results if isinstance(fault, Exception)] == []
    assert not TokenFamily.objects.filter(user_id=user_id).exists()
    reactivate_person(actor=ACTOR, user_id=user_id)
    assert all(is_refused(bearer) for bearer in bearers)
