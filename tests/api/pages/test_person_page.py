"""The pages of one person: their own, and for admins every member's."""

from __future__ import annotations

from typing import Any

import pytest

from orgs.models import Membership, ServerAccess, Team, TeamMembership
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import Site, notices, text
from tests.factories.tenant import connect

PERSON, ACCESS, ACTIVITY = "orgs:person", "orgs:person-access", "audit_pages:person-activity"


@pytest.fixture
def connected(site: Site) -> Site:
    """`fake` is connected in both organizations, and members have no access by default."""
    connect(site.cast.org, site.cast.user("owner"))
    connect(site.cast.other_org, site.cast.user("other_owner"))
    for organization in (site.cast.org, site.cast.other_org):
        organization.default_server_access = "none"
        organization.save()
    return site


def path(site: Site, name: str, whose: str = "member") -> str:
    return site.path(name, str(site.cast.user(whose).id))


def access(site: Site, who: str = "admin", whose: str = "member") -> dict[str, tuple[str, ...]]:
    """Vendor to the reasons for access."""
    context = site.cast.client(who).get(path(site, ACCESS, whose)).context
    return {each.slug: each.reasons for each in context["vendors"]}


def change(site: Site, who: str = "admin", whose: str = "member", **form: str) -> Any:
    return site.cast.client(who).post(path(site, ACCESS, whose), form, follow=True)


@pytest.mark.parametrize("name", [PERSON, ACCESS])
@pytest.mark.parametrize(
    ("who", "whose", "status"),
    [
        ("owner", "member", 200),
        ("admin", "member", 200),
        ("admin", "owner", 200),
        ("member", "member", 200),
        ("member", "admin", 403),
        ("other_owner", "member", 404),
        ("stranger", "member", 404),
        ("owner", "other_owner", 404),
    ],
)
def test_admins_open_every_page_and_members_their_own(
    connected: Site, name: str, who: str, whose: str, status: int
) -> None:
    assert connected.cast.client(who).get(path(connected, name, whose)).status_code == status


@pytest.mark.parametrize(
    ("who", "whose", "labels"),
    [
        ("owner", "member", ["Overview", "Access", "Activity", "Settings"]),
        ("owner", "owner", ["Overview", "Access", "Activity", "Settings"]),
        ("admin", "member", ["Overview", "Access", "Activity"]),
        ("member", "member", ["Overview", "Access"]),
    ],
)
def test_each_tab_opens_for_who_sees_it(connected: Site, who: str, whose: str, labels: list[str]) -> None:
    browser = connected.cast.client(who)
    tabs = browser.get(path(connected, PERSON, whose)).context["tabs"]
    assert [tab["label"] for tab in tabs] == labels
    for tab in tabs:
        page = browser.get(tab["url"])
        assert page.status_code == 200
        assert f"<h1>{connected.cast.user(whose).name}</h1>" in text(page)
        assert [each["label"] for each in page.context["tabs"] if each["active"]] == [tab["label"]]


def test_it_names_teams_and_vendors(connected: Site) -> None:
    row = Membership.objects.get(organization=connected.cast.org, user=connected.cast.user("member"))
    team = Team.objects.create(organization=connected.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=row)
    ServerAccess.objects.create(
        organization=connected.cast.org, team=team, vendor="fake", granted_by=connected.cast.user("owner")
    )
    context = connected.cast.client("admin").get(path(connected, PERSON)).context
    assert ([each.name for each in context["teams"]], context["vendors"]) == (["Night shift"], ["Fake"])
    assert access(connected) == {"fake": ("through team Night shift",)}


def test_access_is_given_and_removed(connected: Site) -> None:
    assert access(connected) == {"fake": ()}
    assert notices(change(connected, give="fake")) == ["Access given."]
    assert access(connected) == access(connected, "member") == {"fake": ("directly",)}
    assert notices(change(connected, remove="fake")) == ["Access removed."]
    assert not ServerAccess.objects.exists()


@pytest.mark.parametrize(
    ("who", "form", "status"),
    [
        ("member", {"give": "fake"}, 403),
        ("other_owner", {"give": "fake"}, 404),
        ("admin", {"give": "unheard"}, 404),
        ("admin", {}, 400),
    ],
)
def test_a_refused_form_changes_nothing(connected: Site, who: str, form: dict[str, str], status: int) -> None:
    assert change(connected, who, **form).status_code == status
    assert not ServerAccess.objects.exists()


def test_activity_shows_this_persons_calls_only(connected: Site) -> None:
    org, member = connected.cast.org, str(connected.cast.user("member").id)
    add_row(org_id=org.id, user_id=member, request_id="theirs")
    add_row(org_id=org.id, user_id=str(connected.cast.user("owner").id))
    add_row(org_id=connected.cast.other_org.id, user_id=member)
    browser = connected.cast.client("admin")
    for query in ("", "?user_id=someone-else"):
        page = browser.get(path(connected, ACTIVITY) + query)
        assert [entry.request_id for entry in page.context["entries"]] == ["theirs"]
    assert connected.cast.client("member").get(path(connected, ACTIVITY)).status_code == 403
    assert browser.get(path(connected, ACTIVITY, "other_owner")).status_code == 404
