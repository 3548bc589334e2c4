"""`after_restore` on a database that was brought back: the ended ends again, the rest goes on, once and for all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry
from credentials.models import Credential, OrganizationDataKey
from gateway.lib import clock
from gateway.lib.revocation_journal import EndKind, session_id
from gateway.recovery import after_restore
from gateway.web.sessions import stored_key
from oauth_ext.bearer import InvalidBearer
from oauth_ext.client_proof import is_proven
from oauth_ext.models import AccessToken, AgentKey, Client, TokenFamily, TrustedIssuer
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.token_families import begin_family
from orgs.models import Invitation, MailDomain, ManagementToken, Membership, Organization
from orgs.services.invitations import create_invitation
from orgs.services.mail_domains import claim_domain
from orgs.services.management_tokens import token_in_force
from orgs.services.people import make_staff
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast, signed_in_session
from tests.factories.management_tokens import made_token
from tests.factories.tenant import Tenant, connect, load_vendor, make_tenant


@dataclass
class Restored:
    """A database as it was at `moment`. `ended` writes lines of the journal of the installation that was lost."""

    cast: Cast
    moment: datetime
    tenant: Tenant
    other: Tenant
    journal: Path

    def ended(self, kind: EndKind, key: object, *, after_s: float = 60, **facts: str) -> None:
        at = clock.rfc3339(self.moment + timedelta(seconds=after_s))
        with self.journal.open("a") as file:
            file.write(json.dumps({"at": at, "kind": kind.value, "id": str(key), **facts}) + "\n")

    def run(self, *arguments: str) -> str:
        out = StringIO()
        call_command("after_restore", f"--at={self.moment.isoformat()}", *arguments, stdout=out, stderr=out)
        return out.getvalue()

    def replay(self) -> str:
        return self.run(f"--journal={self.journal}")

    def family(self, tenant: Tenant) -> TokenFamily:
        return begin_family(
            client=tenant.client,
            user=None,
            org_id=tenant.organization.pk,
            approved_by_id=None,
            scopes=["mcp"],
            resources=[],
        )

    def key(self, tenant: Tenant) -> AgentKey:
        return AgentKey.objects.get(client=tenant.client)


@pytest.fixture
def restored(cast: Cast, tmp_path: Path, settings: LazySettings) -> Restored:
    settings.REVOCATION_JOURNAL = None
    tenant = make_tenant(cast.org, cast.user("owner"))
    other = make_tenant(cast.other_org, cast.user("other_owner"))
    return Restored(cast, clock.now(), tenant, other, tmp_path / "lost.jsonl")


def works(bearer: str) -> bool:
    try:
        load_identity(bearer)
    except InvalidBearer:
        return False
    return True


def rows(org: Organization) -> list[dict[str, Any]]:
    found = AdminAuditEntry.objects.filter(org_id=org.pk, event_type="organization.restored").order_by("id")
    return [row.metadata for row in found]


def test_a_key_that_ended_is_refused_again_and_others_work(restored: Restored) -> None:
    restored.ended(EndKind.AGENT_KEY, restored.key(restored.tenant).pk)
    said = restored.replay()
    assert not works(restored.tenant.agent_key)
    assert works(restored.other.agent_key)
    assert "agent keys: 1 ended\n" in said
    assert "2 organizations" in said
    assert "vendor access" in said
    assert [row["ended"] for row in rows(restored.cast.org)] == [{"agent_key": 1}]
    assert [row["ended"] for row in rows(restored.cast.other_org)] == [{}]


def test_management_tokens_end_again_with_the_journal_and_all_of_before_without_it(restored: Restored) -> None:
    ended, kept, foreign = (
        made_token(restored.cast, "member"),
        made_token(restored.cast, "admin"),
        made_token(restored.cast, "other_owner", organization=restored.cast.other_org),
    )
    ManagementToken.objects.update(created_at=restored.moment)
    row = ManagementToken.objects.get(membership__user=restored.cast.user("member"))
    restored.ended(EndKind.MANAGEMENT_TOKEN, row.pk, org=str(restored.cast.org.pk))
    assert "management tokens: 1 ended\n" in restored.replay()
    assert [token_in_force(each) is not None for each in (ended, kept, foreign)] == [False, True, True]
    assert [each["ended"] for each in rows(restored.cast.org)] == [{"management_token": 1}]
    restored.replay()
    later = made_token(restored.cast, "owner", name="made after the restore")
    restored.run()
    assert [token_in_force(each) is not None for each in (kept, foreign, later)] == [False, False, True]


def test_an_end_before_the_backup_is_no_end_after_it(restored: Restored) -> None:
    restored.ended(EndKind.AGENT_KEY, restored.key(restored.tenant).pk, after_s=-1)
    restored.replay()
    assert works(restored.tenant.agent_key)


def test_a_second_run_ends_and_writes_nothing(restored: Restored) -> None:
    restored.ended(EndKind.AGENT_KEY, restored.key(restored.tenant).pk)
    restored.ended(EndKind.CLIENT_SECRET, restored.tenant.client.pk, org=str(restored.cast.org.pk), after_s=0.001)
    restored.ended(EndKind.PERSON_SESSIONS, restored.cast.user("member").pk)
    restored.replay()
    fresh = mint_agent_key(actor=restored.cast.user("owner"), client=restored.tenant.client).agent_key
    secret = Client.objects.get(pk=restored.tenant.client.pk).client_secret
    session = signed_in_session(restored.cast.user("member"))
    Session.objects.update(expire_date=clock.now() + timedelta(days=1))
    assert "agent keys: 0 ended\n" in restored.replay()
    assert works(fresh)
    assert Client.objects.get(pk=restored.tenant.client.pk).client_secret == secret
    assert Session.objects.filter(pk=stored_key(session)).exists()
    assert len(rows(restored.cast.org)) == 1


def test_a_run_that_was_killed_is_finished_by_the_next(restored: Restored, monkeypatch: pytest.MonkeyPatch) -> None:
    for tenant in (restored.tenant, restored.other):
        restored.ended(EndKind.AGENT_KEY, restored.key(tenant).pk)
    first = min(restored.cast.org.pk, restored.cast.other_org.pk)
    real = after_restore.record_admin

    def killed(event: Any, *, org_id: Any, **facts: Any) -> Any:
        if org_id != first:
            raise KeyboardInterrupt
        return real(event, org_id=org_id, **facts)

    monkeypatch.setattr(after_restore, "record_admin", killed)
    with pytest.raises(KeyboardInterrupt):
        restored.replay()
    assert AgentKey.objects.count() == 1
    monkeypatch.setattr(after_restore, "record_admin", real)
    restored.replay()
    assert not AgentKey.objects.exists()
    assert [len(rows(org)) for org in (restored.cast.org, restored.cast.other_org)] == [1, 1]


def test_a_key_whose_overlap_runs_works_until_its_end(restored: Restored) -> None:
    key = restored.key(restored.tenant)
    until = clock.now() + timedelta(hours=1)
    restored.ended(EndKind.AGENT_KEY, key.pk, until=clock.rfc3339(until))
    restored.replay()
    assert works(restored.tenant.agent_key)
    key.refresh_from_db()
    assert key.ends_at is not None
    restored.replay()
    key.refresh_from_db()
    assert key.ends_at == clock.whole_milliseconds(until)


def test_a_rotated_secret_stays_rotated(restored: Restored) -> None:
    client = restored.tenant.client
    before = Client.objects.get(pk=client.pk).client_secret
    restored.ended(EndKind.CLIENT_SECRET, client.pk, org=str(restored.cast.org.pk))
    restored.replay()
    found = Client.objects.get(pk=client.pk)
    assert found.client_secret != before
    assert found.previous_secret == ""


def test_a_rotation_that_the_backup_knows_is_none_of_later(restored: Restored) -> None:
    client = Client.objects.get(pk=restored.tenant.client.pk)
    Client.objects.filter(pk=client.pk).update(secret_rotated_at=restored.moment)
    known, later = (clock.rfc3339(restored.moment + timedelta(milliseconds=each)) for each in (0, 2))
    # The line is written after the commit, a moment later than the row says.
    facts: dict[str, Any] = {"org": str(restored.cast.org.pk), "after_s": 0.001}
    restored.ended(EndKind.CLIENT_SECRET, client.pk, successor_at=known, **facts)
    restored.replay()
    assert Client.objects.get(pk=client.pk).client_secret == client.client_secret
    restored.ended(EndKind.CLIENT_SECRET, client.pk, successor_at=later, **facts)
    restored.replay()
    assert Client.objects.get(pk=client.pk).client_secret != client.client_secret


def test_a_deleted_organization_is_deleted_and_its_credentials_do_not_open(restored: Restored) -> None:
    load_vendor("http://127.0.0.1:9/mcp")
    connect(restored.cast.org, restored.cast.user("owner"))
    connect(restored.cast.other_org, restored.cast.user("other_owner"))
    restored.ended(EndKind.ORGANIZATION, restored.cast.org.pk)
    restored.ended(EndKind.MEMBERSHIP, restored.cast.user("member").pk, org=str(restored.cast.org.pk))
    assert "organizations: 1 ended" in restored.replay()
    assert Organization.objects.get() == restored.cast.other_org
    assert OrganizationDataKey.objects.get().organization == restored.cast.other_org
    assert not works(restored.tenant.agent_key)
    deleted = AdminAuditEntry.objects.get(org_id=restored.cast.org.pk, event_type="organization.deleted")
    assert deleted.actor_label == "System (after_restore)"


def test_members_people_clients_tokens_and_the_rest(restored: Restored) -> None:
    cast, org = restored.cast, str(restored.cast.org.pk)
    load_vendor("http://127.0.0.1:9/mcp")
    credential = connect(cast.org, cast.user("owner"))
    kept = connect(cast.other_org, cast.user("other_owner"))
    family, kept_family = restored.family(restored.tenant), restored.family(restored.other)
    invitation = create_invitation(actor=cast.user("owner"), organization=cast.org)
    domain = claim_domain(actor=cast.user("owner"), organization=cast.org, offer="join")
    claim_domain(actor=cast.user("other_owner"), organization=cast.other_org, offer="join")
    trusted = TrustedIssuer.objects.create(organization=cast.org, issuer="https://idp.example")
    staff = make_staff(cast.user("stranger").email)
    later = clock.now() + timedelta(hours=1)
    token = AccessToken.objects.create(
        token="own", expires=later, organization=cast.org, application=restored.tenant.client
    )
    AccessToken.objects.update(created=restored.moment - timedelta(minutes=1))
    restored.ended(EndKind.TOKEN_FAMILY, family.pk, org=org)
    restored.ended(EndKind.ACCESS_TOKEN, token.pk, org=org)
    restored.ended(EndKind.CREDENTIAL, credential.pk, org=org)
    restored.ended(EndKind.INVITATION, invitation.pk, org=org)
    restored.ended(EndKind.MAIL_DOMAIN, domain.pk, org=org)
    restored.ended(EndKind.TRUSTED_ISSUER, trusted.pk, org=org)
    restored.ended(EndKind.SUPPORT_ACCESS, staff.pk)
    restored.ended(EndKind.PERSON, cast.user("admin").pk)
    restored.ended(EndKind.SERVICE_CLIENT, restored.tenant.client.pk, org=org)
    # The last owner too: the owner that took over is not in this database.
    restored.ended(EndKind.MEMBERSHIP, cast.user("owner").pk, org=org)
    restored.replay()
    assert list(TokenFamily.objects.all()) == [kept_family]
    assert not TrustedIssuer.objects.exists()
    assert not AccessToken.objects.exists()
    assert Credential.objects.get() == kept
    assert Invitation.objects.get().revoked_at is not None
    assert MailDomain.objects.get().organization == cast.other_org
    for person in (staff, cast.user("admin"), cast.user("owner")):
        person.refresh_from_db()
    assert (staff.is_staff, cast.user("admin").is_active, cast.user("owner").is_active) == (False, False, True)
    assert list(Client.objects.filter(organization__isnull=False)) == [restored.other.client]
    assert not Membership.objects.filter(user=cast.user("owner")).exists()
    assert Membership.objects.filter(user=cast.user("member")).exists()


def test_a_membership_that_began_later_is_another_one(restored: Restored) -> None:
    member = restored.cast.user("member")
    restored.ended(EndKind.MEMBERSHIP, member.pk, org=str(restored.cast.org.pk), after_s=60)
    Membership.objects.filter(user=member).update(joined_at=restored.moment + timedelta(seconds=61))
    restored.replay()
    assert Membership.objects.filter(user=member).exists()


def test_a_number_that_is_given_again_names_another_token(restored: Restored) -> None:
    token = AccessToken.objects.create(
        token="new",
        expires=clock.now() + timedelta(hours=1),
        organization=restored.cast.org,
        application=restored.tenant.client,
    )
    restored.ended(EndKind.ACCESS_TOKEN, token.pk, org=str(restored.cast.org.pk))
    AccessToken.objects.update(created=restored.moment + timedelta(seconds=61))
    restored.replay()
    assert AccessToken.objects.exists()


def test_a_token_of_between_the_named_moment_and_the_backup_ends(restored: Restored) -> None:
    kept, token = (
        AccessToken.objects.create(
            token=name,
            expires=clock.now() + timedelta(hours=1),
            organization=tenant.organization,
            application=tenant.client,
        )
        for name, tenant in (("kept", restored.other), ("own", restored.tenant))
    )
    restored.ended(EndKind.ACCESS_TOKEN, token.pk, org=str(restored.cast.org.pk))
    AccessToken.objects.update(created=restored.moment + timedelta(seconds=60))
    restored.replay()
    assert list(AccessToken.objects.all()) == [kept]


def test_only_the_ended_sessions_end(restored: Restored) -> None:
    member, admin = restored.cast.user("member"), restored.cast.user("admin")
    ended, kept, other = signed_in_session(member), signed_in_session(member), signed_in_session(admin)
    Session.objects.update(expire_date=restored.moment + timedelta(hours=1))
    restored.ended(EndKind.SESSION, session_id(stored_key(ended)))
    assert "sessions: 1 ended" in restored.replay()
    assert set(Session.objects.values_list("pk", flat=True)) == {stored_key(kept), stored_key(other)}
    restored.ended(EndKind.PERSON_SESSIONS, member.pk)
    restored.replay()
    assert Session.objects.get().pk == stored_key(other)


def test_without_a_journal_all_of_before_ends_and_all_of_after_stays(restored: Restored) -> None:
    cast = restored.cast
    signed_in_session(cast.user("member"))
    Session.objects.update(expire_date=restored.moment + timedelta(hours=1))
    old, young = restored.family(restored.tenant), restored.family(restored.other)
    TokenFamily.objects.filter(pk=old.pk).update(created_at=restored.moment - timedelta(days=1))
    invitation = create_invitation(actor=cast.user("owner"), organization=cast.org)
    Invitation.objects.update(created_at=restored.moment - timedelta(days=1))
    claim_domain(actor=cast.user("owner"), organization=cast.org, offer="join")
    MailDomain.objects.update(created_at=restored.moment - timedelta(days=1))
    claim_domain(actor=cast.user("other_owner"), organization=cast.other_org, offer="join")
    fresh = mint_agent_key(actor=cast.user("other_owner"), client=restored.other.client, overlap_hours=24).agent_key
    said = restored.run()
    assert MailDomain.objects.get().organization == cast.other_org
    assert not works(restored.tenant.agent_key)
    assert not works(restored.other.agent_key)
    assert works(fresh)
    assert list(TokenFamily.objects.all()) == [young]
    assert not Session.objects.exists()
    invitation.refresh_from_db()
    assert invitation.revoked_at is not None
    assert "sessions: 1 ended\n" in said
    assert "agent keys: 2 ended\n" in said
    assert "memberships" in said.partition("Without a journal")[2]
    assert rows(cast.org)[0]["ended"] == {"agent_key": 1, "token_family": 1, "invitation": 1, "mail_domain": 1}
    restored.run()
    assert len(rows(cast.org)) == 1


@pytest.mark.parametrize("at", ["yesterday", "2999-01-01"])
def test_a_wrong_moment_is_refused(restored: Restored, at: str) -> None:
    with pytest.raises(CommandError):
        call_command("after_restore", f"--at={at}")
    assert works(restored.tenant.agent_key)


@pytest.mark.parametrize(
    "content", [None, '{"kind": "unknown"}\n', '{"at": "2999-01-01T00:00:00Z", "kind": "person", "id": "?"}\n']
)
def test_a_journal_that_cannot_be_used_changes_nothing(restored: Restored, content: str | None) -> None:
    restored.ended(EndKind.AGENT_KEY, restored.key(restored.tenant).pk)
    if content is None:
        restored.journal.unlink()
    else:
        with restored.journal.open("a") as file:
            file.write(content)
    with pytest.raises(CommandError, match="journal cannot be used"):
        restored.replay()
    assert works(restored.tenant.agent_key)


def test_a_secret_that_was_rotated_again_has_no_overlap_left(restored: Restored) -> None:
    restored.moment -= timedelta(hours=1)
    client, org = restored.tenant.client, str(restored.cast.org.pk)
    until = clock.rfc3339(clock.now() + timedelta(hours=24))
    first, second = (clock.rfc3339(restored.moment + timedelta(seconds=each)) for each in (60, 120))
    # A planned rotation, and a minute later one that ends every secret of before at once.
    restored.ended(EndKind.CLIENT_SECRET, client.pk, org=org, until=until, successor_at=first)
    restored.ended(EndKind.CLIENT_SECRET, client.pk, org=org, after_s=120, successor_at=second)
    restored.replay()
    found = Client.objects.get(pk=client.pk)
    assert not is_proven(found, restored.tenant.client_secret)
    assert found.previous_secret == ""


def test_a_secret_keeps_the_overlap_of_its_only_rotation(restored: Restored) -> None:
    client, org = restored.tenant.client, str(restored.cast.org.pk)
    until = clock.rfc3339(clock.now() + timedelta(hours=24))
    Client.objects.filter(pk=client.pk).update(secret_rotated_at=restored.moment)
    known, later = (clock.rfc3339(restored.moment + timedelta(milliseconds=each)) for each in (0, 2))
    restored.ended(EndKind.CLIENT_SECRET, client.pk, org=org, after_s=0.001, successor_at=known)
    restored.ended(EndKind.CLIENT_SECRET, client.pk, org=org, after_s=0.003, until=until, successor_at=later)
    restored.replay()
    assert is_proven(Client.objects.get(pk=client.pk), restored.tenant.client_secret)


def test_a_session_of_after_the_named_moment_that_the_backup_has_ends_too(restored: Restored) -> None:
    """`--at` may be a little earlier than the backup."""
    member, admin = restored.cast.user("member"), restored.cast.user("admin")
    ended, others = signed_in_session(member), signed_in_session(admin)
    # Both signed in ten seconds after the named moment, and before the backup.
    age = timedelta(seconds=django_settings.SESSION_COOKIE_AGE)
    Session.objects.update(expire_date=restored.moment + timedelta(seconds=10) + age)
    restored.ended(EndKind.SESSION, session_id(stored_key(ended)))
    restored.replay()
    assert Session.objects.get().pk == stored_key(others)
    restored.ended(EndKind.PERSON_SESSIONS, admin.pk)
    restored.replay()
    assert not Session.objects.exists()


def test_a_session_of_after_the_end_of_the_others_stays(restored: Restored) -> None:
    member = restored.cast.user("member")
    signed_in_session(member)
    age = timedelta(seconds=django_settings.SESSION_COOKIE_AGE)
    Session.objects.update(expire_date=restored.moment + timedelta(seconds=61) + age)
    restored.ended(EndKind.PERSON_SESSIONS, member.pk, after_s=60)
    restored.replay()
    assert Session.objects.exists()
