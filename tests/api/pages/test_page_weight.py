"""Every page of the URL configuration, for owner, admin and member: few statements, and few bytes on a first visit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import override_settings

from bench.page_figures import BYTES_GOAL, QUERY_GOAL, Visit, visits
from bench.page_seed import SMALL, Seeded, Size, seed
from bench.page_walk import page_paths
from tests.factories.statements import statements

ROLES = ("owner", "admin", "member")
# The pages that show alerts or what became of e-mails, and their tables.
OF_ALERTS = {"orgs/<uuid:org_id>", "orgs/<uuid:org_id>/settings/alerts"}
OF_MAIL = {"orgs/<uuid:org_id>/invitations"}
ALERTS, MAIL = ("orgs_alert",), ("mail_outgoingmail",)
# Less of everything than SMALL has, and still some of each.
TINY = Size(members=3, vendors=3, tools=2, agents=2, calls=12)
# Pages that lead elsewhere: the start and the sign-in of a person who is signed in, steps of a
# form that begin with a choice, leaving, which the last owner may not, and forms without a page.
NOT_SHOWN = frozenset(
    (
        "",
        "signin",
        "setup",
        "profile/mail",
        "welcome/join",
        "profile/sessions",
        "orgs/<uuid:org_id>/leave",
        "orgs/<uuid:org_id>/settings/default-access",
        "orgs/<uuid:org_id>/credentials/<uuid:credential_id>/check",
        "orgs/<uuid:org_id>/teams/<uuid:team_id>/credentials",
        "orgs/<uuid:org_id>/agents/<str:client_id>/credentials",
    )
)


@pytest.fixture
def seeded(db: None) -> Seeded:
    return seed(SMALL)


@pytest.fixture(autouse=True)
def _unlimited() -> Iterator[None]:
    with override_settings(RATELIMIT_ENABLE=False):
        yield


def seen_by(seeded: Seeded, role: str) -> list[Visit]:
    return list(visits(seeded.cast.client(role), page_paths(seeded.things), times=0))


@pytest.mark.django_db
@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_light_and_asks_no_more_of_a_larger_organization(role: str) -> None:
    with transaction.atomic():
        few = {visit.route: visit.queries for visit in seen_by(seed(TINY), role)}
        transaction.set_rollback(True)
    seeded = seed(SMALL)
    seen = seen_by(seeded, role)
    assert len(seen) > 10
    assert {visit.route: visit.queries for visit in seen if visit.queries > QUERY_GOAL} == {}
    assert {visit.route: visit.sent for visit in seen if visit.sent > BYTES_GOAL} == {}
    many = {visit.route: visit.queries for visit in seen}
    assert few.keys() == many.keys()
    assert {route: (few[route], many[route]) for route in few if many[route] > few[route]} == {}
    if role == "owner":
        assert page_paths(seeded.things).keys() - many.keys() == NOT_SHOWN


# Statements of the pages that read usage, for those who see it. The transactions count that a request opens itself.
OF_USAGE = {
    "orgs/<uuid:org_id>/activity/usage": 10,
    "orgs/<uuid:org_id>/billing": 10,
    "orgs/<uuid:org_id>/vendors/<slug:vendor>": QUERY_GOAL,
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("role", "routes"), [("owner", set(OF_USAGE)), ("admin", set(OF_USAGE) - {"orgs/<uuid:org_id>/billing"})]
)
def test_pages_with_figures_keep_to_their_statements(role: str, routes: set[str]) -> None:
    seeded = seed(SMALL)
    paths = {route: path for route, path in page_paths(seeded.things).items() if route in OF_USAGE}
    seen = {visit.route: visit.queries for visit in visits(seeded.cast.client(role), paths, times=0)}
    assert seen.keys() == routes
    assert {route: queries for route, queries in seen.items() if queries > OF_USAGE[route]} == {}


@pytest.mark.parametrize("role", ROLES)
def test_no_other_page_asks_for_alerts_or_mail(seeded: Seeded, role: str) -> None:
    """All others cost what they would without them; Home asks once, for admins. Spec: D166, D167"""
    browser = seeded.cast.client(role)
    asked: dict[str, str] = {}
    for route, path in page_paths(seeded.things).items():
        with statements() as seen:
            browser.get(path)
        asked[route] = " ".join(seen)
    assert sum(bool(sql) for sql in asked.values()) > 10
    assert routes_with(asked, *ALERTS) <= OF_ALERTS
    assert routes_with(asked, *MAIL) <= OF_MAIL
    assert role == "member" or routes_with(asked, *ALERTS, *MAIL) == OF_ALERTS | OF_MAIL


def routes_with(asked: dict[str, str], *tables: str) -> set[str]:
    return {route for route, sql in asked.items() if any(table in sql for table in tables)}
