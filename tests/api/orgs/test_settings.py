"""PATCH /api/orgs/:orgId/settings."""

from __future__ import annotations

import pytest

from orgs.models import Organization
from tests.factories.api import Api

PATH = "/orgs/{org}/settings"


def test_an_owner_sets_the_default(api: Api, epochs_to_bump: list[str]) -> None:
    answer = api.send("owner", "PATCH", PATH, {"defaultServerAccess": "all", "name": "Ignored"})
    assert answer.status_code == 200
    assert (answer.json()["settings"], answer.json()["name"]) == ({"defaultServerAccess": "all"}, "Acme")
    assert api.events() == ["organization.settings_updated"]
    assert f"org:{api.cast.org.id}" in epochs_to_bump
    assert Organization.objects.get(pk=api.cast.other_org.pk).default_server_access == "none"


@pytest.mark.parametrize("value", ["some", "ALL", "", None, 1, ["all"]])
def test_another_value_is_refused(api: Api, value: object) -> None:
    assert api.faults("owner", "PATCH", PATH, {"defaultServerAccess": value}) == {"defaultServerAccess"}
    assert api.faults("owner", "PATCH", PATH, {}) == {"defaultServerAccess"}
    assert api.events() == []


@pytest.mark.parametrize(
    ("who", "refusal"),
    [("admin", (403, "forbidden")), ("member", (403, "forbidden")), ("other_owner", (404, "not_found"))],
)
def test_others_may_not(api: Api, who: str, refusal: tuple[int, str]) -> None:
    assert api.refused(who, "PATCH", PATH, {"defaultServerAccess": "all"}) == refusal
    assert api.get("owner", "/orgs/{org}")["settings"] == {"defaultServerAccess": "none"}
