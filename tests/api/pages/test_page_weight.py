"""Every page of the URL configuration, for owner, admin and member: few statements, and few bytes on a first visit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from bench.page_figures import BYTES_GOAL, QUERY_GOAL, visits
from bench.page_seed import SMALL, Seeded, seed
from bench.page_walk import page_paths

ROLES = ("owner", "admin", "member")
# Pages that lead elsewhere: the start and the sign-in of a person who is signed in, steps of a
# form that begin with a choice, leaving, which the last owner may not, and forms without a page.
NOT_SHOWN = frozenset(
    (
        "",
        "signin",
        "setup",
        "profile/sessions",
        "orgs/<uuid:org_id>/leave",
        "orgs/<uuid:org_id>/settings/default-access",
        "orgs/<uuid:org_id>/credentials/<uuid:credential_id>/check",
        "orgs/<uuid:org_id>/teams/<uuid:team_id>/credentials",
        "orgs/<uuid:org_id>/agents/<str:client_id>/credentials",
    )
)
# Pages that join what several apps know. A page that asks once for each row of a list is far beyond these figures.
QUERIES_OF_JOINED_PAGES = {
    "orgs/<uuid:org_id>/agents/<str:client_id>/tools/<slug:vendor>": 17,
    "orgs/<uuid:org_id>/vendors/<slug:vendor>": 16,
    "orgs/<uuid:org_id>/vendors/<slug:vendor>/access": 17,
    "orgs/<uuid:org_id>/vendors/<slug:vendor>/tools/<path:tool>": 20,
}


@pytest.fixture
def seeded(db: None) -> Seeded:
    return seed(SMALL)


@pytest.fixture(autouse=True)
def _unlimited() -> Iterator[None]:
    with override_settings(RATELIMIT_ENABLE=False):
        yield


@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_light(seeded: Seeded, role: str) -> None:
    seen = list(visits(seeded.cast.client(role), page_paths(seeded.things), times=0))
    assert len(seen) > 10
    bound = {visit.route: QUERIES_OF_JOINED_PAGES.get(visit.route, QUERY_GOAL) for visit in seen}
    assert {visit.route: visit.queries for visit in seen if visit.queries > bound[visit.route]} == {}
    assert {visit.route: visit.sent for visit in seen if visit.sent > BYTES_GOAL} == {}


def test_the_owner_sees_every_page(seeded: Seeded) -> None:
    paths = page_paths(seeded.things)
    seen = {visit.route for visit in visits(seeded.cast.client("owner"), paths, times=0)}
    assert paths.keys() - seen == NOT_SHOWN
