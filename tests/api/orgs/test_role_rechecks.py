"""The gate looked at the role before the body was read; services look again, because both may be seconds apart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction

from audit.models import AdminAuditEntry
from audit.shipping.destinations import Changes
from credentials.credential_scope import CredentialScope
from credentials.services.credentials import delete_credential
from credentials.services.keys import update_named_key
from gateway.lib import clock
from gateway.lib.errors import Forbidden, NotFound
from oauth_ext.services import service_client_allowlists, service_client_vendors
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.service_client_changes import change_service_client
from oauth_ext.services.service_clients import create_service_client, delete_service_client, rotate_client_secret
from orgs.errors import InvitationNotFound
from orgs.models import Membership, User
from orgs.roles import Role
from orgs.services import invitations, log_destinations, members, organizations, server_access, teams, tool_access
from orgs.services.invitation_sealing import token_of
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.credentials import Setting, make_setting
from tests.factories.destinations import webhook_of

Change = Callable[[Setting, User], object]


def _own(setting: Setting) -> dict[str, Any]:
    return {"organization": setting.cast.org}


def _member_id(setting: Setting) -> Any:
    return setting.cast.user("member").id


def _rename_key(setting: Setting, actor: User) -> object:
    key = setting.store(CredentialScope.NAMED_KEY)
    return update_named_key(actor=actor, **_own(setting), key_id=key.id, vendor="acme", name="Mine", team_id=None)


def _revoke_link(setting: Setting, actor: User) -> object:
    link = invitations.create_invitation(actor=setting.cast.user("owner"), **_own(setting))
    return invitations.revoke_invitation(actor=actor, **_own(setting), invitation_id=link.id)


def _revoke_key(setting: Setting, actor: User) -> object:
    mint_agent_key(actor=setting.cast.user("owner"), client=setting.service_client)
    return revoke_agent_key(actor=actor, client=setting.service_client)


def _destination(setting: Setting) -> dict[str, Any]:
    return {**_own(setting), "destination_id": webhook_of(setting.cast.user("owner"), setting.cast.org).pk}


def _client(setting: Setting) -> dict[str, Any]:
    return {**_own(setting), "client": setting.service_client}


CHANGES: dict[str, Change] = {
    "store a credential": lambda s, who: s.store(actor=who),
    "store a team's": lambda s, who: s.store(CredentialScope.TEAM, actor=who),
    "store a service client's": lambda s, who: s.store(CredentialScope.SERVICE_CLIENT, actor=who),
    "create a named key": lambda s, who: s.store(CredentialScope.NAMED_KEY, actor=who),
    "rename a named key": _rename_key,
    "delete a credential": lambda s, who: delete_credential(actor=who, credential=s.store()),
    "create a service client": lambda s, who: create_service_client(actor=who, **_own(s), name="New"),
    "delete a service client": lambda s, who: delete_service_client(actor=who, client=s.service_client),
    "change a service client": lambda s, who: change_service_client(
        actor=who, client=s.service_client, changes={"name": "New"}
    ),
    "allow tools of a service client": lambda s, who: service_client_allowlists.set_client_allowlist(
        actor=who, **_client(s), vendor="acme", tools=[]
    ),
    "make a service client read-only": lambda s, who: service_client_allowlists.set_tool_mode(
        actor=who, **_client(s), mode="read_only"
    ),
    "rotate a client secret": lambda s, who: rotate_client_secret(actor=who, client=s.service_client),
    "mint an agent key": lambda s, who: mint_agent_key(actor=who, client=s.service_client),
    "revoke an agent key": _revoke_key,
    "invite": lambda s, who: invitations.create_invitation(actor=who, **_own(s)),
    "revoke an invitation": _revoke_link,
    "create a team": lambda s, who: teams.create_team(actor=who, **_own(s), name="New"),
    "delete a team": lambda s, who: teams.delete_team(actor=who, **_own(s), team_id=s.team.id),
    "join a team": lambda s, who: teams.add_team_member(actor=who, **_own(s), team_id=s.team.id, user_id=_member_id(s)),
    "grant a vendor": lambda s, who: server_access.add_member_vendor(
        actor=who, **_own(s), user_id=_member_id(s), vendor="acme"
    ),
    "grant a team": lambda s, who: server_access.add_team_vendor(
        actor=who, **_own(s), team_id=s.team.id, vendor="acme"
    ),
    "lift a restriction": lambda s, who: service_client_vendors.replace_client_vendors(
        actor=who, **_client(s), vendors=None
    ),
    "set an allowlist": lambda s, who: tool_access.set_allowlist(
        actor=who, **_own(s), vendor="acme", role="member", tools=[]
    ),
    "clear an allowlist": lambda s, who: tool_access.clear_allowlist(
        actor=who, **_own(s), vendor="acme", role="member"
    ),
    "open every vendor": lambda s, who: organizations.update_settings(
        actor=who, **_own(s), default_server_access="all"
    ),
    "ship logs": lambda s, who: webhook_of(who, s.cast.org),
    "pause log shipping": lambda s, who: log_destinations.change_destination(
        actor=who, **_destination(s), changes=Changes(enabled=False)
    ),
    "replay logs": lambda s, who: log_destinations.replay_destination(
        actor=who, **_destination(s), since=clock.now() - timedelta(days=1)
    ),
    "stop log shipping": lambda s, who: log_destinations.delete_destination(actor=who, **_destination(s)),
    "rename": lambda s, who: organizations.rename_organization(actor=who, **_own(s), name="Mine"),
    "delete": lambda s, who: organizations.delete_organization(actor=who, **_own(s)),
    "promote": lambda s, who: members.change_role(actor=who, **_own(s), user_id=_member_id(s), role=Role.ADMIN),
    "remove": lambda s, who: members.remove_member(actor=who, **_own(s), user_id=_member_id(s)),
}


@pytest.fixture
def setting(cast: Cast) -> Setting:
    load_vendors("acme")
    return make_setting(cast)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize(("who", "refusal"), [("member", Forbidden), ("stranger", NotFound), ("other_owner", NotFound)])
def test_a_person_who_lost_the_role_meanwhile_changes_nothing(
    setting: Setting, change: Change, who: str, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        change(setting, setting.cast.user(who))
    assert not AdminAuditEntry.objects.filter(actor_id=str(setting.cast.user(who).id)).exists()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_owner_still_may(setting: Setting, change: Change) -> None:
    change(setting, setting.cast.user("owner"))


def test_joining_an_organization_while_it_is_deleted(committed_cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """In PostgreSQL the link is found, then its organization goes; in SQLite one waits for the other."""
    cast = committed_cast
    link = invitations.create_invitation(actor=cast.user("owner"), organization=cast.org)
    token = token_of(link)
    assert token is not None
    found, gone = threading.Event(), threading.Event()
    find = invitations.find_invitation

    def find_and_wait(sought: str) -> Any:
        invitation = find(sought)
        found.set()
        if connection.vendor == "postgresql":
            assert gone.wait(60)
        return invitation

    monkeypatch.setattr(invitations, "find_invitation", find_and_wait)
    outcome: list[object] = []

    def join() -> None:
        try:
            outcome.append(invitations.accept_invitation(user=cast.user("stranger"), token=token or ""))
        except Exception as refusal:
            outcome.append(type(refusal))
        finally:
            connections.close_all()

    thread = threading.Thread(target=join)
    with transaction.atomic():
        thread_started_here = connection.vendor == "postgresql"
        if thread_started_here:
            thread.start()
            assert found.wait(60)
        organizations.delete_organization(actor=cast.user("owner"), organization=cast.org)
    gone.set()
    if not thread_started_here:
        thread.start()
    thread.join(60)
    assert outcome == [InvitationNotFound]
    assert not Membership.objects.filter(user=cast.user("stranger")).exists()
