"""The matrix of server access: what it shows of whom and why, and that saving changes what was toggled only."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from gateway.lib import clock
from orgs.models import Membership, Organization, ServerAccess, Team, TeamMembership
from orgs.pages import server_access
from orgs.server_access_reasons import effective_server_access
from tests.api.pages.conftest import INERT, SCRIPT, Site, hidden, notices, text
from tests.factories.cast import make_person
from tests.factories.catalog import load_vendors
from tests.factories.tenant import connect

BACKEND = "orgs.signin.backend.IdentityBackend"


@pytest.fixture
def matrix(site: Site) -> Site:
    """`fake` is connected, `acme` is not. The member is in the team Ops, and so is the other owner, in theirs."""
    load_vendors("acme")
    connect(site.cast.org, site.cast.user("owner"))
    for organization, who in ((site.cast.org, "member"), (site.cast.other_org, "other_owner")):
        team = Team.objects.create(organization=organization, name="Ops")
        TeamMembership.objects.create(team=team, membership=membership_of(site, who))
        ServerAccess.objects.create(organization=organization, membership=membership_of(site, who), vendor="acme")
    return site


def membership_of(site: Site, who: str) -> Membership:
    return site.cast.user(who).memberships.get()


def team_of(site: Site) -> Team:
    return Team.objects.get(organization=site.cast.org)


def path(site: Site) -> str:
    return site.path("orgs:server-access")


def cells(page: Any) -> dict[tuple[str, str], tuple[bool, tuple[str, ...]]]:
    return {
        (row.label, cell.vendor.slug): (cell.is_direct, cell.reasons)
        for row in page.context["rows"]
        for cell in row.cells
    }


def save(site: Site, who: str = "admin", *, had: list[str], grant: list[str], query: str = "") -> Any:
    return site.cast.client(who).post(path(site) + query, {"had": had, "grant": grant}, follow=True)


def granted(organization: Organization) -> set[tuple[str, str]]:
    rows = ServerAccess.objects.filter(organization=organization)
    return {(row.membership.user.name if row.membership else row.team.name, row.vendor) for row in rows}  # type: ignore[union-attr]


def test_each_cell_says_why(matrix: Site) -> None:
    ServerAccess.objects.create(organization=matrix.cast.org, team=team_of(matrix), vendor="fake")
    page = matrix.cast.client("admin").get(path(matrix))
    assert cells(page) == {
        ("Owner", "fake"): (False, ("by role",)),
        ("Owner", "acme"): (False, ()),
        ("Admin", "fake"): (False, ("by role",)),
        ("Admin", "acme"): (False, ()),
        ("Member", "fake"): (False, ("team Ops",)),
        ("Member", "acme"): (True, ()),
    }
    assert "Acme</a><span" in text(page)
    assert "not connected" in text(page)
    assert "Other Owner" not in text(page)
    Organization.objects.update(default_server_access="all")
    page = matrix.cast.client("admin").get(path(matrix))
    assert cells(page)["Member", "fake"] == (False, ("by default", "team Ops"))
    assert "By default, members can use all vendors" in text(page)


def test_all_and_none_are_offered_where_they_change_something(matrix: Site) -> None:
    page = text(matrix.cast.client("admin").get(path(matrix)))
    assert page.count("data-bulk ") == 1
    assert "vendors for Member</span>" in page


def test_teams_are_counted_in_the_language_of_the_page(matrix: Site) -> None:
    answer = matrix.cast.client("admin").get(path(matrix), {"view": "teams"}, headers={"Accept-Language": "de"})
    assert [row.note for row in answer.context["rows"]] == ["1 Mitglied"]


def test_the_matrix_agrees_with_effective_server_access(matrix: Site) -> None:
    ServerAccess.objects.create(organization=matrix.cast.org, team=team_of(matrix), vendor="fake")
    shown = cells(matrix.cast.client("admin").get(path(matrix)))
    for who in ("owner", "admin", "member"):
        effective = {each.vendor for each in effective_server_access(membership_of(matrix, who), ["fake"])}
        label = matrix.cast.user(who).name
        assert effective == {slug for (name, slug), (direct, why) in shown.items() if name == label and (direct or why)}


def test_saving_changes_what_was_toggled_only(matrix: Site) -> None:
    member, owner = (matrix.cast.user(who).id for who in ("member", "owner"))
    # Access given by another admin meanwhile: the page did not know, and does not take it back.
    admin = membership_of(matrix, "admin")
    ServerAccess.objects.create(organization=matrix.cast.org, membership=admin, vendor="acme")
    answer = save(matrix, had=[f"{member}:acme", f"{owner}:"], grant=[f"{member}:fake", f"{owner}:fake"])
    assert answer.context["undo"]["text"] == "Access updated: 2 added, 1 removed."
    assert granted(matrix.cast.org) == {("Member", "fake"), ("Owner", "fake"), ("Admin", "acme")}
    assert granted(matrix.cast.other_org) == {("Other Owner", "acme")}
    events = AdminAuditEntry.objects.filter(event_type__startswith="server_access.").order_by("timestamp", "id")
    assert sorted(events.values_list("event_type", "actor_label", "target_label")) == [
        ("server_access.granted", "Admin", "Member"),
        ("server_access.granted", "Admin", "Owner"),
        ("server_access.revoked", "Admin", "Member"),
    ]


@pytest.mark.parametrize("query", ["", "?view=teams"])
def test_what_was_saved_is_undone_by_one_button(matrix: Site, query: str) -> None:
    mine = team_of(matrix).pk if query else matrix.cast.user("member").id
    before = granted(matrix.cast.org)
    had = [] if query else [f"{mine}:acme"]
    answer = save(matrix, had=had, grant=[f"{mine}:fake"], query=query)
    assert granted(matrix.cast.org) != before
    undone = matrix.cast.client("admin").post(path(matrix) + query, answer.context["undo"]["fields"], follow=True)
    assert undone.context["undo"]["text"].startswith("Access updated:")
    assert granted(matrix.cast.org) == before


@pytest.mark.parametrize("query", ["", "?view=teams"])
def test_access_is_given_with_an_end_and_shown_with_it(matrix: Site, query: str) -> None:
    mine = team_of(matrix).pk if query else matrix.cast.user("member").id
    browser, form = matrix.cast.client("admin"), {"grant": [f"{mine}:fake"], "ends": "1d"}
    assert "ends <time" not in text(browser.get(path(matrix) + query))
    assert "ends <time" in text(browser.post(path(matrix) + query, form, follow=True))
    row = ServerAccess.objects.get(organization=matrix.cast.org, vendor="fake")
    assert row.expires_at is not None
    assert timedelta(hours=23) < row.expires_at - clock.now() <= timedelta(days=1)


@pytest.mark.parametrize("ends", [{"ends": "soon"}, {"ends": "date", "ends_on": "2020-01-01"}, {"ends": "date"}])
def test_a_wrong_end_changes_nothing(matrix: Site, ends: dict[str, str]) -> None:
    before, member = granted(matrix.cast.org), matrix.cast.user("member").id
    answer = matrix.cast.client("admin").post(path(matrix), {"grant": [f"{member}:fake"], **ends}, follow=True)
    assert notices(answer)[0].endswith("Nothing changed.")
    assert granted(matrix.cast.org) == before


def test_nothing_toggled_changes_nothing(matrix: Site) -> None:
    member = matrix.cast.user("member").id
    answer = save(matrix, had=[f"{member}:acme"], grant=[f"{member}:acme"])
    assert notices(answer) == ["Nothing changed."]
    assert not AdminAuditEntry.objects.filter(event_type__startswith="server_access.").exists()


def test_teams_have_a_matrix_of_their_own(matrix: Site) -> None:
    team = team_of(matrix)
    page = matrix.cast.client("admin").get(path(matrix), {"view": "teams"})
    assert cells(page) == {("Ops", "fake"): (False, ()), ("Ops", "acme"): (False, ())}
    assert "1 member" in text(page)
    answer = save(matrix, had=[f"{team.pk}:"], grant=[f"{team.pk}:fake"], query="?view=teams")
    assert answer.context["undo"]["text"].startswith("Access updated: 1 added, 0 removed.")
    assert cells(answer)["Ops", "fake"] == (True, ())
    assert ("Ops", "fake") in granted(matrix.cast.org)


@pytest.mark.parametrize("query", ["", "?view=teams"])
def test_ids_of_another_organization_change_nothing(matrix: Site, query: str) -> None:
    foreign = Team.objects.get(organization=matrix.cast.other_org).pk if query else matrix.cast.user("other_owner").id
    before = granted(matrix.cast.other_org)
    answer = save(matrix, had=[f"{foreign}:acme"], grant=[f"{foreign}:fake"], query=query)
    assert notices(answer) == ["1 of the people you changed had already left."]
    assert granted(matrix.cast.other_org) == before


@pytest.mark.parametrize(
    ("grant", "status"),
    [
        ("nonsense", 400),
        ("{member}:nowhere", 404),
        ("{member}:" + " ".join(f"v{number}" for number in range(600)), 400),  # as many cells as no page has
    ],
    ids=["damaged", "unknown vendor", "too many"],
)
def test_what_no_page_sends_is_refused_whole(matrix: Site, grant: str, status: int) -> None:
    member = matrix.cast.user("member").id
    before = granted(matrix.cast.org)
    answer = save(matrix, had=[f"{member}:acme"], grant=[f"{member}:fake", grant.format(member=member)])
    assert answer.status_code == status
    assert granted(matrix.cast.org) == before


def test_a_long_list_is_searched_and_paged(matrix: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_access, "ROWS", 2)
    monkeypatch.setattr(server_access, "COLUMNS", 1)
    browser = matrix.cast.client("admin")
    first = browser.get(path(matrix))
    assert set(cells(first)) == {("Owner", "acme"), ("Admin", "acme")}
    assert set(cells(browser.get(path(matrix), {"page": "2"}))) == {("Member", "acme")}
    assert set(cells(browser.get(path(matrix), {"page": "2", "from": "1"}))) == {("Member", "fake")}
    assert set(cells(browser.get(path(matrix), {"page": "x", "from": "-5"}))) == set(cells(first))
    assert set(cells(browser.get(path(matrix), {"q": "memb"}))) == {("Member", "acme")}
    assert set(cells(browser.get(path(matrix), {"q": "memb", "vendor": "FAK"}))) == {("Member", "fake")}
    assert set(cells(browser.get(path(matrix), {"q": " example  MEM ", "vendor": "ke fa"}))) == {("Member", "fake")}
    assert "No matches" in text(browser.get(path(matrix), {"q": "nobody at all"}))
    assert "No matches" in text(browser.get(path(matrix), {"vendor": "nothing"}))


@pytest.mark.parametrize(
    ("asked", "found"), [("", ["Night shift", "Ops"]), (" shift  NI ", ["Night shift"]), ("x", [])]
)
def test_teams_are_searched_by_words(matrix: Site, asked: str, found: list[str]) -> None:
    for organization in (matrix.cast.org, matrix.cast.other_org):
        Team.objects.create(organization=organization, name="Night shift")
    page = matrix.cast.client("admin").get(path(matrix), {"view": "teams", "q": asked})
    assert [row.label for row in page.context["rows"]] == found


def test_as_many_queries_for_many_members(matrix: Site, django_assert_max_num_queries: Any) -> None:
    for number in range(20):
        person = make_person(f"person{number}")
        membership = Membership.objects.create(organization=matrix.cast.org, user=person, role="member")
        TeamMembership.objects.create(team=team_of(matrix), membership=membership)
    browser = matrix.cast.client("admin")
    browser.get(path(matrix))
    with django_assert_max_num_queries(20):
        assert len(browser.get(path(matrix)).context["rows"]) == server_access.ROWS


def test_the_default_is_changed_by_owners(matrix: Site) -> None:
    link = f"{matrix.path('orgs:default-access')}?to=all"
    assert link in text(matrix.owner().get(path(matrix)))
    admin = text(matrix.cast.client("admin").get(path(matrix)))
    assert link not in admin
    assert "An owner can change that." in admin


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("nobody", 302)])
def test_others_change_nothing(matrix: Site, who: str, status: int) -> None:
    member = matrix.cast.user("member").id
    answer = matrix.cast.client(who).post(path(matrix), {"had": [], "grant": [f"{member}:fake"]})
    assert answer.status_code == status
    assert ("Member", "fake") not in granted(matrix.cast.org)


def test_a_form_from_elsewhere_changes_nothing(matrix: Site) -> None:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(matrix.cast.user("admin"), backend=BACKEND)
    form = {"grant": [f"{matrix.cast.user('member').id}:fake"]}
    assert browser.post(path(matrix), form).status_code == 403
    token = hidden(browser.get(path(matrix)), "csrfmiddlewaretoken")
    assert browser.post(path(matrix), {**form, "csrfmiddlewaretoken": token}).status_code == 302
    assert ("Member", "fake") in granted(matrix.cast.org)


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_changes_nothing_here(matrix: Site) -> None:
    member = matrix.cast.user("member").id
    assert save(matrix, had=[], grant=[f"{member}:fake"]).status_code == 200
    assert ("Member", "fake") in granted(matrix.cast.org)


def test_names_are_inert(matrix: Site) -> None:
    Team.objects.update(name=SCRIPT)
    ServerAccess.objects.create(organization=matrix.cast.org, team=team_of(matrix), vendor="fake")
    for query in ({}, {"view": "teams"}, {"q": SCRIPT, "vendor": SCRIPT}):
        page = text(matrix.owner().get(path(matrix), query))
        assert SCRIPT not in page
        assert SCRIPT in unescape(page)
        assert INERT in page


def test_an_organization_without_vendors_is_shown_the_way(site: Site) -> None:
    assert "No vendor is connected yet" in text(site.owner().get(path(site)))


@pytest.mark.parametrize("query", ["", "?view=teams"])
def test_a_whole_page_of_cells_is_saved_in_few_queries(
    matrix: Site, query: str, django_assert_max_num_queries: Any, epochs_to_bump: list[str]
) -> None:
    org, vendors = matrix.cast.org, [f"v{number}" for number in range(server_access.COLUMNS)]
    load_vendors(*vendors)
    rows = []
    for number in range(server_access.ROWS):
        if query:
            rows.append(Team.objects.create(organization=org, name=f"Team {number}").id)
        else:
            person = make_person(f"person{number}")
            Membership.objects.create(organization=org, user=person, role="member")
            rows.append(person.id)
    before = granted(org)
    cells = [f"{row}:{' '.join(vendors)}" for row in rows]
    epochs_to_bump.clear()
    save(matrix, had=cells[:1], grant=[])  # warms the session; taken back is what nobody had
    with django_assert_max_num_queries(40):
        matrix.cast.client("admin").post(f"{path(matrix)}{query}", {"had": [], "grant": cells})
    count = server_access.ROWS * server_access.COLUMNS
    assert len(granted(org) - before) == count
    assert AdminAuditEntry.objects.filter(event_type="server_access.granted", org_id=org.id).count() == count
    assert len(epochs_to_bump) == len(set(epochs_to_bump))
    with django_assert_max_num_queries(40):
        matrix.cast.client("admin").post(f"{path(matrix)}{query}", {"had": cells, "grant": []})
    assert granted(org) == before
    assert AdminAuditEntry.objects.filter(event_type="server_access.revoked", org_id=org.id).count() == count
