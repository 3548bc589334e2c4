"""Long lists are fields to type into: a name, an address or an id is understood, and what is not is said."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from credentials.models import Credential
from oauth_ext.models import ServiceClientVendor
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from tests.api.pages.conftest import Site, notices, text
from tests.factories.cast import make_person
from tests.factories.tenant import connect, load_vendor


@pytest.fixture
def team(site: Site) -> Team:
    Team.objects.create(organization=site.cast.other_org, name="Night shift")
    return Team.objects.create(organization=site.cast.org, name="Night shift")


def press(site: Site, team: Team, page: str, **fields: str) -> Any:
    return site.cast.client("admin").post(site.path(f"orgs:{page}", str(team.id)), fields, follow=True)


def in_team(team: Team) -> list[str]:
    rows = TeamMembership.objects.filter(team=team).order_by("joined_at", "id")
    return list(rows.values_list("membership__user__display_name", flat=True))


def join(site: Site, name: str, organization: Any = None) -> str:
    """A member of the organization with this name; their address."""
    person = make_person(uuid.uuid4().hex)
    person.display_name = name
    person.save()
    Membership.objects.create(user=person, organization=organization or site.cast.org, role="member")
    return person.email


@pytest.mark.parametrize("typed", ["fake", "Fake", " fAKE "])
def test_a_vendor_is_typed_by_name_or_slug(site: Site, team: Team, typed: str) -> None:
    assert notices(press(site, team, "team-access", action="grant", vendor=typed)) == [
        "Everyone in the team can use Fake."
    ]
    assert list(ServerAccess.objects.filter(team=team).values_list("vendor", flat=True)) == ["fake"]


@pytest.mark.parametrize("typed", ["", "Fakes", "Fa"])
def test_another_text_is_no_vendor(site: Site, team: Team, typed: str) -> None:
    answer = press(site, team, "team-access", action="grant", vendor=typed)
    assert (answer.status_code, answer.context["errors"]) == (422, {"vendor": "Choose a vendor from the catalog."})
    chooser = site.path("credentials:team-credentials", str(team.id))
    assert notices(site.owner().get(chooser, {"vendor": typed}, follow=True)) == ["Choose a vendor first."]
    assert not Credential.objects.exists()


def test_an_agents_vendor_is_typed_by_name(site: Site) -> None:
    connect(site.cast.org, site.cast.user("owner"))
    path = site.client_path("service-client-access")
    browser = site.cast.client("admin")
    browser.post(path, {"action": "restrict"}, follow=True)
    ServiceClientVendor.objects.all().delete()
    answer = browser.post(path, {"action": "give", "vendor": "Fake"}, follow=True)
    assert notices(answer) == ["build bot can use Fake."]
    assert '<option value="Fake"></option>' in text(answer)


def test_connected_vendors_come_first(site: Site, team: Team) -> None:
    load_vendor("http://127.0.0.1:9/mcp", slug="another")
    connect(site.cast.org, site.cast.user("owner"))
    page = site.cast.client("admin").get(site.path("orgs:team-access", str(team.id)))
    assert next(vendor.slug for vendor in page.context["addable"]) == "fake"


def test_a_member_is_typed_by_name_or_address(site: Site, team: Team) -> None:
    join(site, "Ana Lee")
    ben, cleo = join(site, "Ben Lee"), join(site, "Cleo Ruiz")
    join(site, "Ana Lee", site.cast.other_org)
    for typed in ("ana lee", ben.upper(), " Cleo Ruiz\0"):
        press(site, team, "team", action="add-member", member=typed)
    assert in_team(team) == ["Ana Lee", "Ben Lee", "Cleo Ruiz"]
    page = text(site.cast.client("admin").get(site.path("orgs:team", str(team.id))))
    assert f'<option value="{site.cast.user("member").email}">' in page
    assert cleo not in page.partition("</datalist>")[0].partition("<datalist")[2]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Choose a member."),
        ("  ", "Choose a member."),
        ("Cleo Ruiz", "Several members match “Cleo Ruiz”. Type the email address."),
        ("Nobody", "No one outside the team matches “Nobody”."),
        ("Dan Stranger", "No one outside the team matches “Dan Stranger”."),
    ],
)
def test_a_text_that_means_no_one_or_several(site: Site, team: Team, typed: str, said: str) -> None:
    for name in ("Ana Lee", "Cleo Ruiz", "Cleo Ruiz"):
        join(site, name)
    join(site, "Dan Stranger", site.cast.other_org)
    answer = press(site, team, "team", action="add-member", member=typed)
    assert (answer.status_code, answer.context["errors"]) == (422, {"member": said})
    assert in_team(team) == []
    assert f'value="{typed}"' in text(answer)


def test_a_part_of_a_name_adds_no_one(site: Site, team: Team) -> None:
    address = join(site, "Ana Leeds")
    answer = press(site, team, "team", action="add-member", member="Ana Lee")
    said = f"“Ana Lee” is no one’s full name or email address. Did you mean Ana Leeds ({address})?"
    assert (answer.status_code, answer.context["errors"]) == (422, {"member": said})
    assert in_team(team) == []


def test_a_name_in_the_form_of_an_address_adds_no_one(site: Site, team: Team) -> None:
    join(site, "ceo@corp.example")
    assert press(site, team, "team", action="add-member", member="ceo@corp.example").status_code == 422
    assert in_team(team) == []
