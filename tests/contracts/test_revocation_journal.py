"""Every end of a right leaves a line in the journal of ends, and every table says whether its rows are rights."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.db.models.signals import post_delete

from credentials.models import Credential
from credentials.services.credentials import delete_credential
from gateway.lib import clock
from gateway.lib.revocation_journal import EndKind, session_id
from gateway.web.sessions import SessionStore, key_of, stored_key
from oauth_ext.models import AccessToken, AgentKey, Client, TokenFamily, TrustedIssuer
from oauth_ext.services.acting import set_acting
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.deactivation import deactivate_person
from oauth_ext.services.ends_again import end_access_token_again
from oauth_ext.services.revocation import revoke_token
from oauth_ext.services.service_clients import create_service_client, delete_service_client, rotate_client_secret
from oauth_ext.services.token_families import begin_family, end_family
from oauth_ext.services.trusted_issuers import remove_issuer
from orgs.models import Invitation, ManagementToken, Membership, Organization
from orgs.services.browser_sessions import end_other_sessions, note_use
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import accept_invitation, create_invitation, revoke_invitation
from orgs.services.mail_domains import claim_domain, release_domain
from orgs.services.management_tokens import revoke_token as revoke_management_token
from orgs.services.members import leave_organization, remove_member
from orgs.services.organizations import delete_organization
from orgs.services.people import make_staff, revoke_staff
from tests.factories.cast import ISSUER, Cast, signed_in_session
from tests.factories.management_tokens import made_token
from tests.factories.tenant import Tenant, connect, load_vendor, make_tenant

# Tables whose rows are rights: the end of each is written, whichever service ends it.
JOURNALED = {
    "oauth_ext.AccessToken",
    "oauth_ext.AgentKey",
    "oauth_ext.Client",
    "oauth_ext.TokenFamily",
    "oauth_ext.TrustedIssuer",
    "orgs.MailDomain",
    "orgs.ManagementToken",
    "orgs.Membership",
    "orgs.Organization",
    "orgs.User",
    "sessions.Session",
    "credentials.Credential",
    "credentials.VendorConnection",
}
# Ends with one of the above, or is ended by a change that its service writes down.
WITH_ANOTHER = {
    "oauth_ext.RefreshToken": "its token family",
    "oauth_ext.IDToken": "never written",
    "oauth_ext.LinkedSubject": "its trusted issuer or its membership",
    "orgs.BrowserSession": "its session",
    "orgs.Identity": "its person",
    "orgs.Invitation": "revoked by a change of the row, which the service writes down",
    "credentials.OrganizationDataKey": "its organization",
    "credentials.VendorOAuthClient": "its organization",
    "credentials.VendorRevocation": "sent to the vendor",
}
# Ends within minutes or a day by itself; without a journal, after_restore ends all of them.
SHORT = {
    "credentials.VendorSignIn",
    "oauth_ext.AuthorizationRequest",
    "oauth_ext.DeviceGrant",
    "oauth_ext.Grant",
    "oauth_ext.UsedAssertion",
    "orgs.UsedLogoutToken",
}
# Narrows, describes, or widens what a member or agent may use; after_restore says that these are of the backup.
NO_RIGHT = {
    "credentials.VendorQuestionRules", "credentials.VendorSignInRules",
    "oauth_ext.RememberedConsent", "oauth_ext.ServiceClientAllowlist", "oauth_ext.ServiceClientItemAllowlist",
    "oauth_ext.ServiceClientVendor",
    "oauth_ext.SigningKey", "oauth_ext.UserCodeMiss", "orgs.AccessRequest", "orgs.Alert", "orgs.AlertMessage",
    "orgs.AlertSettings", "orgs.ItemAllowlist", "orgs.JoinRequest", "orgs.KnownBrowser",
    "orgs.KnownTool", "orgs.Removal",
    "orgs.ServerAccess", "orgs.Team", "orgs.TeamMembership", "orgs.ToolAllowlist", "orgs.ToolSnapshot",
}  # fmt: skip
APPS = {"oauth_ext", "orgs", "sessions", "credentials"}

Committed = Callable[[], AbstractContextManager[Any]]


@pytest.fixture
def journal(tmp_path: Path, settings: LazySettings) -> Path:
    settings.REVOCATION_JOURNAL = tmp_path / "revocations.jsonl"
    return tmp_path / "revocations.jsonl"


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Any) -> Committed:
    """A block whose hooks run at its end, as after a commit."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def tenant(cast: Cast) -> Tenant:
    return make_tenant(cast.org, cast.user("owner"))


def lines(journal: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def ends(journal: Path) -> set[tuple[str, str]]:
    return {(line["kind"], line["id"]) for line in lines(journal)}


def test_every_table_of_rights_is_decided() -> None:
    models = {model._meta.label for model in apps.get_models() if model._meta.app_label in APPS}
    assert models == JOURNALED | WITH_ANOTHER.keys() | SHORT | NO_RIGHT


@pytest.mark.parametrize("label", sorted(JOURNALED))
def test_rows_that_are_rights_cannot_go_unseen(label: str) -> None:
    assert post_delete.has_listeners(apps.get_model(label))


def test_every_kind_has_a_test() -> None:
    source = Path(__file__).read_text()
    assert [kind for kind in EndKind if f"EndKind.{kind.name}," not in source] == []


def test_agent_keys(cast: Cast, tenant: Tenant, journal: Path, committed: Committed) -> None:
    owner = cast.user("owner")
    first = AgentKey.objects.get(client=tenant.client)
    with committed():
        mint_agent_key(actor=owner, client=tenant.client)
    second = AgentKey.objects.get(client=tenant.client)
    with committed():
        mint_agent_key(actor=owner, client=tenant.client, overlap_hours=24)
    third = AgentKey.objects.get(client=tenant.client, ends_at=None)
    with committed():
        revoke_agent_key(actor=owner, client=tenant.client)
    found = lines(journal)
    assert [line["id"] for line in found[:2]] == [str(first.pk), str(second.pk)]
    assert {(line["kind"], line["id"]) for line in found} == {
        (EndKind.AGENT_KEY, str(key.pk)) for key in (first, second, third)
    }
    assert ["until" in line for line in found[:2]] == [False, True]


def test_management_tokens(cast: Cast, journal: Path, committed: Committed) -> None:
    for name in ("one", "two", "old"):
        made_token(cast, "member", name=name)
    ManagementToken.objects.filter(name="old").update(expires_at=clock.now())
    by_name = {row.name: str(row.pk) for row in ManagementToken.objects.all()}
    with committed():
        revoke_management_token(actor=cast.user("member"), token_id=uuid.UUID(by_name["one"]))
    with committed():
        remove_member(actor=cast.user("owner"), organization=cast.org, user_id=cast.user("member").pk)
    assert {each for each in ends(journal) if each[0] == EndKind.MANAGEMENT_TOKEN} == {
        (EndKind.MANAGEMENT_TOKEN, by_name["one"]),
        (EndKind.MANAGEMENT_TOKEN, by_name["two"]),
    }
    assert {line["org"] for line in lines(journal)} == {str(cast.org.pk)}


def test_tokens(cast: Cast, tenant: Tenant, journal: Path, committed: Committed) -> None:
    family = begin_family(
        client=tenant.client, user=None, org_id=cast.org.pk, approved_by_id=None, scopes=["mcp"], resources=[]
    )
    known = {"organization": cast.org, "application": tenant.client, "scope": "mcp"}
    later = clock.now() + timedelta(hours=1)
    own = AccessToken.objects.create(token="own", expires=later, **known)
    AccessToken.objects.create(token="of the family", expires=later, token_family=family, **known)
    expired = AccessToken.objects.create(token="expired", expires=clock.now() - timedelta(1), **known)
    own_id, family_id = str(own.pk), str(family.pk)
    with committed():
        end_family(family)
        revoke_token(token="own", client=tenant.client)
        expired.delete()
    assert ends(journal) == {(EndKind.TOKEN_FAMILY, family_id), (EndKind.ACCESS_TOKEN, own_id)}


def test_an_agents_token_about_a_person_ends_without_the_persons_app(
    cast: Cast, tenant: Tenant, journal: Path, committed: Committed
) -> None:
    owner, app = cast.user("owner"), Client.objects.create(client_id="mcpc_app", name="App")
    family = begin_family(client=app, user=owner, org_id=cast.org.pk, approved_by_id=None, scopes=["mcp"], resources=[])
    set_acting(actor=owner, organization=cast.org, client=tenant.client, acts_for_people=True)
    known = {"organization": cast.org, "scope": "mcp", "user": owner, "token_family": family}
    later = clock.now() + timedelta(hours=1)
    AccessToken.objects.create(token="of the app", expires=later, application=app, **known)
    one, two = (
        AccessToken.objects.create(token=text, expires=later, application=tenant.client, **known)
        for text in ("one", "two")
    )
    with committed():
        revoke_token(token="one", client=tenant.client)
        set_acting(actor=owner, organization=cast.org, client=tenant.client, acts_for_people=False)
    assert ends(journal) == {(EndKind.ACCESS_TOKEN, str(one.pk)), (EndKind.ACCESS_TOKEN, str(two.pk))}
    assert end_access_token_again(number=one.pk, ended_at=clock.now()) is False
    assert AccessToken.objects.get().token == "of the app"


def test_service_clients(cast: Cast, journal: Path, committed: Committed) -> None:
    owner = cast.user("owner")
    made = create_service_client(actor=owner, organization=cast.org, name="Robot").client
    mint_agent_key(actor=owner, client=made)
    key = AgentKey.objects.get(client=made)
    with committed():
        rotate_client_secret(actor=owner, client=made)
    with committed():
        delete_service_client(actor=owner, client=Client.objects.get(pk=made.pk))
    assert ends(journal) == {
        (EndKind.CLIENT_SECRET, str(made.pk)),
        (EndKind.SERVICE_CLIENT, str(made.pk)),
        (EndKind.AGENT_KEY, str(key.pk)),
    }


def test_sessions(cast: Cast, journal: Path, committed: Committed) -> None:
    member = cast.user("member")
    signed_out, here, there = (signed_in_session(member) for _ in range(3))
    anonymous = SessionStore()
    anonymous.create()
    with committed():
        SessionStore(signed_out).flush()
        SessionStore(anonymous.session_key).flush()
    assert ends(journal) == {(EndKind.SESSION, session_id(stored_key(signed_out)))}
    note_use(user_id=member.pk, key=stored_key(there), user_agent="")
    with committed():
        end_other_sessions(actor=member, session=SessionStore(here), key_of=key_of)
    found = ends(journal)
    assert {(EndKind.PERSON_SESSIONS, str(member.pk)), (EndKind.SESSION, session_id(stored_key(there)))} <= found
    assert all(stored_key(each) not in journal.read_text() for each in (signed_out, here, there))


def test_expired_sessions_leave_no_line(cast: Cast, journal: Path, committed: Committed) -> None:
    signed_in_session(cast.user("member"))
    Session.objects.update(expire_date=clock.now() - timedelta(1))
    with committed():
        SessionStore.clear_expired()
    assert ends(journal) == set()
    assert not Session.objects.exists()


def test_members(cast: Cast, journal: Path, committed: Committed) -> None:
    owner, member, admin = (cast.user(who) for who in ("owner", "member", "admin"))
    invitation = create_invitation(actor=admin, organization=cast.org)
    with committed():
        leave_organization(actor=member, organization=cast.org)
        remove_member(actor=owner, organization=cast.org, user_id=admin.pk)
    assert ends(journal) == {
        (EndKind.MEMBERSHIP, str(member.pk)),
        (EndKind.MEMBERSHIP, str(admin.pk)),
        (EndKind.INVITATION, str(invitation.pk)),
    }
    assert {line["org"] for line in lines(journal)} == {str(cast.org.pk)}


def test_invitations(cast: Cast, journal: Path, committed: Committed) -> None:
    owner = cast.user("owner")
    invitation = create_invitation(actor=owner, organization=cast.org)
    with committed():
        revoke_invitation(actor=owner, organization=cast.org, invitation_id=invitation.pk)
    assert ends(journal) == {(EndKind.INVITATION, str(invitation.pk))}
    assert Invitation.objects.get().revoked_at is not None


def test_an_invitation_ends_with_its_last_use(cast: Cast, journal: Path, committed: Committed) -> None:
    owner = cast.user("owner")
    twice = create_invitation(actor=owner, organization=cast.org, max_uses=2)
    with committed():
        accept_invitation(user=cast.user("stranger"), token=str(token_of(twice)))
    assert ends(journal) == set()
    with committed():
        accept_invitation(user=cast.user("other_owner"), token=str(token_of(twice)))
    assert ends(journal) == {(EndKind.INVITATION, str(twice.pk))}


def test_trusted_issuers(cast: Cast, journal: Path, committed: Committed) -> None:
    row = TrustedIssuer.objects.create(organization=cast.org, issuer="https://idp.example")
    with committed():
        remove_issuer(actor=cast.user("owner"), organization=cast.org, issuer_id=row.pk)
    assert ends(journal) == {(EndKind.TRUSTED_ISSUER, str(row.pk))}


def test_mail_domains(cast: Cast, journal: Path, committed: Committed) -> None:
    owner = cast.user("owner")
    row = claim_domain(actor=owner, organization=cast.org, offer="join")
    with committed():
        release_domain(actor=owner, organization=cast.org, domain_id=row.pk)
    assert ends(journal) == {(EndKind.MAIL_DOMAIN, str(row.pk))}


def test_people(cast: Cast, journal: Path, committed: Committed) -> None:
    member = cast.user("member")
    with committed():
        deactivate_person(actor=cast.user("owner").as_actor(), user_id=member.pk)
    assert {(EndKind.PERSON, str(member.pk)), (EndKind.PERSON_SESSIONS, str(member.pk))} <= ends(journal)


def test_support_access(cast: Cast, journal: Path, committed: Committed) -> None:
    staff = make_staff(cast.user("admin").email)
    with committed():
        revoke_staff(staff)
    assert ends(journal) == {(EndKind.SUPPORT_ACCESS, str(staff.pk))}


def test_the_provider_signs_a_person_out(cast: Cast, journal: Path, committed: Committed) -> None:
    person = cast.user("member")
    person.end_sessions()
    with committed():
        person.save(update_fields=["password"])
        person.save(update_fields=["display_name"])
    assert [(line["kind"], line["id"]) for line in lines(journal)] == [(EndKind.PERSON_SESSIONS, str(person.pk))]
    assert person.identities.get().issuer == ISSUER


def test_credentials(cast: Cast, journal: Path, committed: Committed) -> None:
    owner = cast.user("owner")
    load_vendor("http://127.0.0.1:9/mcp")
    stored = connect(cast.org, owner)
    assert isinstance(stored, Credential)
    with committed():
        delete_credential(actor=owner, credential=stored)
    assert ends(journal) == {(EndKind.CREDENTIAL, str(stored.pk))}


def test_an_organization_takes_all_of_its_own_along(
    cast: Cast, tenant: Tenant, journal: Path, committed: Committed
) -> None:
    other = make_tenant(cast.other_org, cast.user("other_owner"))
    with committed():
        delete_organization(actor=cast.user("owner"), organization=cast.org)
    found = ends(journal)
    assert {(EndKind.ORGANIZATION, str(cast.org.pk)), (EndKind.SERVICE_CLIENT, str(tenant.client.pk))} <= found
    assert str(other.client.pk) not in journal.read_text()
    assert Organization.objects.get() == cast.other_org
    assert Membership.objects.filter(organization=cast.other_org).exists()
    assert not TokenFamily.objects.exists()
