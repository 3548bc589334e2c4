"""POST /api/orgs/:orgId/redeem-code."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from gateway.lib import secrets
from gateway.site.api_docs import document
from tests.factories.api import Api

PATH = "/orgs/{org}/redeem-code"


@pytest.fixture(autouse=True)
def _codes(settings: LazySettings) -> None:
    settings.LEGACY_CODE_SHA256 = (secrets.sha256("LAUNCH-2024"), secrets.sha256("FRIENDS"))


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"code": "LAUNCH-2024"}, (409, "plan_already_active")),
        ({"code": " FRIENDS "}, (409, "plan_already_active")),
        ({"code": "launch-2024"}, (422, "invalid_code")),
        ({"code": "x"}, (422, "invalid_code")),
        ({"code": ""}, (400, "code_required")),
        ({"code": "   "}, (400, "code_required")),
        ({"code": None}, (400, "code_required")),
        ({}, (400, "code_required")),
        ({"code": 5}, (400, "invalid")),
        ({"code": ["FRIENDS"]}, (400, "invalid")),
    ],
)
def test_the_answer_to_each_code(api: Api, body: object, refusal: tuple[int, str]) -> None:
    assert api.refused("owner", "POST", PATH, body) == refusal


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_only_an_owner_may_try(api: Api, who: str, status: int) -> None:
    assert api.refused(who, "POST", PATH, {"code": "FRIENDS"})[0] == status


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_organization_hears_the_same(api: Api) -> None:
    assert api.refused("owner", "POST", PATH, {"code": "FRIENDS"}) == (409, "plan_already_active")


def test_five_guesses_in_a_quarter_of_an_hour_whatever_they_are(api: Api) -> None:
    for body in ({"code": "a"}, {"code": "FRIENDS"}, {}, {"code": 1}, {"code": "b"}):
        assert api.send("owner", "POST", PATH, body).status_code in {400, 409, 422}
    assert api.refused("owner", "POST", PATH, {"code": "FRIENDS"}) == (429, "rate_limited")
    assert api.refused("other_owner", "POST", "/orgs/{other}/redeem-code", {"code": "FRIENDS"})[0] == 409


def test_no_success_is_documented(api: Api) -> None:
    documented = document()["paths"]["/api/orgs/{org_id}/redeem-code"]["post"]["responses"]
    assert {status for status in documented if status < "400"} == set()
    assert {"400", "409", "422", "429"} <= set(documented)
