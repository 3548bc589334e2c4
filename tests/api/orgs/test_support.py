"""Support access: given and taken by command, reached through the identity provider, refused in plain words."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from audit.actor import system
from audit.models import AdminAuditEntry
from orgs.errors import DeactivatedPerson
from orgs.models import Identity, Membership, Organization, User
from orgs.roles import Role
from orgs.services.identities import person_for_identity
from orgs.services.members import add_member
from orgs.services.people import make_staff
from tests.api.support.people import act, reasons
from tests.factories.cast import ISSUER, Cast, make_person


def run(*arguments: str, **options: object) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def test_a_person_becomes_staff_and_is_none_again(cast: Cast) -> None:
    browser = cast.client("stranger")
    assert browser.get("/admin/", follow=True).status_code == 403
    assert run("make_staff", "stranger@example.com") == "stranger@example.com is support staff.\n"
    assert browser.get("/admin/").status_code == 200
    assert browser.get("/admin/orgs/user/").status_code == 200
    assert run("revoke_staff", "stranger@example.com") == "stranger@example.com is no longer support staff.\n"
    assert browser.get("/admin/", follow=True).status_code == 403
    assert browser.get("/profile").status_code == 200, "still a person like others"
    assert run("revoke_staff", "stranger@example.com") == "stranger@example.com was not support staff.\n"


@pytest.mark.parametrize(
    ("option", "acts", "tables"), [("view_only", False, 403), ("without_tables", True, 403), ("", True, 200)]
)
def test_rights_of_staff(cast: Cast, option: str, acts: bool, tables: int) -> None:
    run("make_staff", "stranger@example.com", **({option: True} if option else {}))
    browser = cast.client("stranger")
    page = browser.get(f"/admin/support/people/{cast.user('member').pk}")
    assert page.status_code == 200
    assert ("Deactivate" in page.content.decode()) is acts
    assert browser.get("/admin/tables/").status_code == tables
    assert browser.get("/admin/orgs/user/").status_code == tables


def test_staff_who_never_signed_in_are_linked_by_a_verified_address(db: None) -> None:
    run("make_staff", "support@example.com")
    claims = {"email": "support@example.com", "email_verified": True}
    assert person_for_identity(issuer=ISSUER, sub="s", claims=claims).is_staff


@pytest.mark.parametrize("command", [("make_staff", "{}"), ("create_org", "Acme", "{}")])
def test_a_claimed_address_gets_nothing_by_command(db: None, command: tuple[str, ...]) -> None:
    """A stranger signs in first with an address that nobody vouches for; the operator means somebody else."""
    thief = person_for_identity(issuer=ISSUER, sub="thief", claims={"email": "boss@example.com"})
    with pytest.raises(CommandError, match=rf"doesn’t vouch for it: {thief.pk} \(boss\)\. Give the person’s ID"):
        run(*(part.format("Boss@example.com") for part in command))
    assert User.objects.count() == 1, "no second person, with whom nobody could sign in"
    thief.refresh_from_db()
    assert not thief.is_staff
    assert not Membership.objects.exists()
    boss = person_for_identity(issuer=ISSUER, sub="boss", claims={"email": "boss@example.com", "email_verified": True})
    run(*(part.format("boss@example.com") for part in command))
    boss.refresh_from_db()
    assert boss.is_staff or Membership.objects.filter(user=boss).exists()


@pytest.mark.parametrize("command", [("make_staff", "{}"), ("create_org", "Acme", "{}")])
def test_a_person_of_a_provider_that_vouches_for_nobody_is_named_by_id(db: None, command: tuple[str, ...]) -> None:
    boss = person_for_identity(issuer=ISSUER, sub="boss", claims={"email": "boss@example.com"})
    run(*(part.format(boss.pk) for part in command))
    boss.refresh_from_db()
    assert boss.is_staff or Membership.objects.filter(user=boss).exists()
    run("deactivate_user", str(boss.pk))
    with pytest.raises(CommandError, match="is deactivated"):
        run(*(part.format(boss.pk) for part in command))
    with pytest.raises(CommandError, match="There is no one with the id"):
        run(*(part.format("00000000-0000-4000-8000-000000000000") for part in command))


def test_createsuperuser_makes_staff_without_a_password(db: None) -> None:
    call_command("createsuperuser", interactive=False, email="root@example.com", stdout=StringIO())
    person = User.objects.get()
    assert (person.email, person.is_staff, person.is_superuser) == ("root@example.com", True, True)
    assert not person.has_usable_password()
    assert not User.objects.create_superuser("b@example.com", "a-password").has_usable_password()


def test_a_bad_address_makes_nobody(db: None) -> None:
    with pytest.raises(CommandError, match="email address"):
        run("make_staff", "nobody")
    assert not User.objects.exists()


def test_the_admin_s_sign_in_leads_to_the_provider(cast: Cast) -> None:
    browser = Browser()
    answer = browser.get("/admin/orgs/user/")
    assert answer["Location"] == "/admin/login/?next=/admin/orgs/user/"
    answer = browser.get(answer["Location"])
    assert answer["Location"] == "/oidc/authenticate/?next=%2Fadmin%2Forgs%2Fuser%2F"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/profile", "/admin/login/", ""])
def test_the_admin_s_sign_in_leads_nowhere_else(cast: Cast, target: str) -> None:
    assert Browser().get("/admin/login/", {"next": target})["Location"] == "/oidc/authenticate/?next=%2Fadmin%2F"
    run("make_staff", "stranger@example.com")
    assert cast.client("stranger").get("/admin/login/", {"next": target})["Location"] == "/admin/"


def test_a_person_without_support_access_gets_a_message_and_no_loop(cast: Cast) -> None:
    page = cast.client("member").get("/admin/login/?next=/admin/")
    assert page.status_code == 403
    assert "support staff" in page.content.decode()
    assert "member@example.com" in page.content.decode()


def test_no_form_is_taken(cast: Cast) -> None:
    form = {"username": "member@example.com", "password": "x"}
    assert Browser().post("/admin/login/", form).status_code == 405


def test_staff_deactivate_and_reactivate_people(cast: Cast) -> None:
    support = make_person("support")
    run("make_staff", "support@example.com")
    browser = Browser()
    browser.force_login(support, backend="orgs.signin.backend.IdentityBackend")
    page = cast.client("member")
    assert act(browser, "deactivate", cast.user("member")).status_code == 302
    refused = act(browser, "deactivate", support)
    assert refused.status_code == 409
    assert "You can’t deactivate yourself." in refused.content.decode()
    assert page.get("/profile").status_code == 302
    row = AdminAuditEntry.objects.get(event_type="member.deactivated")
    assert (row.org_id, row.actor_label) == (cast.org.id, "Support (support staff)")
    assert act(browser, "reactivate", cast.user("member")).status_code == 302
    assert User.objects.get(pk=cast.user("member").pk).is_active
    assert [action for _, action, _ in reasons(cast.org)] == ["Deactivate person", "Let sign in again"]


def test_somebody_shut_out_before_the_first_sign_in_is_not_let_in_as_another(db: None) -> None:
    run("create_org", "Initech", "bill@initech.example")
    run("deactivate_user", "bill@initech.example")
    claims = {"email": "bill@initech.example", "email_verified": True}
    assert not person_for_identity(issuer=ISSUER, sub="bill", claims=claims).is_active
    assert Identity.objects.get().user == User.objects.get()


def commands_naming(email: str, cast: Cast) -> list[tuple[str, ...]]:
    """Each command that gives something to the person with the address."""
    return [("make_staff", email), ("add_member", str(cast.org.pk), email), ("create_org", "Initech", email)]


def everything() -> tuple[object, ...]:
    """All that these commands could change."""
    people = User.objects.order_by("pk").values_list("pk", "email", "is_active", "is_staff", "is_superuser")
    return list(people), Membership.objects.count(), Organization.objects.count(), AdminAuditEntry.objects.count()


@pytest.mark.parametrize("address", ["stranger@example.com", "Stranger@Example.com"])
def test_a_deactivated_person_is_given_nothing_by_command(cast: Cast, address: str) -> None:
    run("deactivate_user", "stranger@example.com")
    before, shut_out = everything(), cast.user("stranger").pk
    for command in commands_naming(address, cast):
        with pytest.raises(CommandError, match=f"is deactivated.*reactivate_user {shut_out}"):
            run(*command)
    assert everything() == before
    run("reactivate_user", "stranger@example.com")
    for command in commands_naming(address, cast):
        run(*command)
    memberships = Membership.objects.filter(user_id=shut_out)
    assert (User.objects.get(pk=shut_out).is_staff, memberships.count()) == (True, 2)


def test_a_deactivated_member_is_said_to_be_deactivated(cast: Cast) -> None:
    run("deactivate_user", "member@example.com")
    with pytest.raises(CommandError, match="is deactivated"):
        run("add_member", str(cast.org.pk), "member@example.com", "--role", "admin")
    assert Membership.objects.get(user=cast.user("member")).role == "member"


def test_an_address_that_an_active_person_has_now_names_that_person(cast: Cast) -> None:
    run("deactivate_user", "stranger@example.com")
    claims = {"email": "stranger@example.com", "email_verified": True}
    heir = person_for_identity(issuer=ISSUER, sub="heir", claims=claims)
    for command in commands_naming("stranger@example.com", cast):
        run(*command)
    heir.refresh_from_db()
    assert (heir.is_staff, Membership.objects.filter(user=heir).count()) == (True, 2)
    assert not User.objects.get(pk=cast.user("stranger").pk).is_staff


def test_a_deactivated_person_with_a_claimed_address_is_not_meant(cast: Cast) -> None:
    thief = person_for_identity(issuer=ISSUER, sub="thief", claims={"email": "boss@example.com"})
    run("deactivate_user", str(thief.pk))
    assert run("make_staff", "boss@example.com") == "boss@example.com is support staff.\n"
    thief.refresh_from_db()
    assert not thief.is_staff


def test_the_services_refuse_a_person_who_was_deactivated_after_the_lookup(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cast.user("stranger")
    run("deactivate_user", "stranger@example.com")
    monkeypatch.setattr("orgs.services.people.person_with_email", lambda email: found)
    before = everything()
    with pytest.raises(DeactivatedPerson):
        make_staff("stranger@example.com")
    with pytest.raises(DeactivatedPerson):
        add_member(actor=system("add_member"), organization=cast.org, user=found, role=Role.MEMBER)
    assert everything() == before
