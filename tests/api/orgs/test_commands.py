"""create_org and add_member."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry
from orgs.models import Membership, Organization, User
from orgs.services.identities import person_for_identity
from tests.factories.cast import Cast, make_person


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_an_organization_for_somebody_who_never_signed_in() -> None:
    said = run("create_org", "Initech", "bill@initech.example")
    organization = Organization.objects.get()
    assert said == f"{organization.id} Initech, owner bill@initech.example\n"
    claims = {"email": "bill@initech.example", "email_verified": True}
    person = person_for_identity(issuer="https://idp.example", sub="bill", claims=claims)
    assert Membership.objects.get().user == person
    assert AdminAuditEntry.objects.get().event_type == "organization.created"


def test_an_owner_who_exists_is_found(cast: Cast) -> None:
    run("create_org", "Initech", "Owner@example.com")
    assert Membership.objects.get(organization__name="Initech").user == cast.user("owner")


@pytest.mark.parametrize(("name", "email"), [("", "a@example.com"), ("Initech", "nobody"), ("a\nb", "a@example.com")])
def test_a_bad_name_or_address_makes_nothing(cast: Cast, name: str, email: str) -> None:
    people = User.objects.count()
    with pytest.raises(CommandError):
        run("create_org", name, email)
    assert (Organization.objects.count(), User.objects.count()) == (2, people)


def test_a_member_is_added_once_and_recorded(cast: Cast) -> None:
    org_id = str(cast.org.id)
    assert run("add_member", org_id, "stranger@example.com", "--role", "admin") == (
        "stranger@example.com is admin of Acme.\n"
    )
    row = AdminAuditEntry.objects.get()
    assert (row.event_type, row.actor_id, row.target_label) == ("member.added", "system", "Stranger")
    with pytest.raises(CommandError, match="already a member"):
        run("add_member", org_id, "stranger@example.com")
    assert Membership.objects.get(user=cast.user("stranger")).role == "admin"


def test_an_ambiguous_person_or_unknown_organization(cast: Cast) -> None:
    User.objects.create_user(email="stranger@example.com")
    with pytest.raises(CommandError, match="Several people"):
        run("add_member", str(cast.org.id), "stranger@example.com")
    with pytest.raises(CommandError, match="no organization"):
        run("add_member", str(make_person("other").id), "member@example.com")
    assert Membership.objects.count() == 4
