"""GET /api/orgs/:orgId/tool-access/:vendor; PUT, DELETE …/:role."""

from __future__ import annotations

import pytest

from orgs.models import ToolAllowlist
from orgs.selectors import allowlists
from tests.factories.api import Api

pytestmark = pytest.mark.usefixtures("vendors")
PATH = "/orgs/{org}/tool-access/acme"


def test_no_list_means_everything(api: Api) -> None:
    assert api.get("admin", PATH) == []
    assert allowlists(api.cast.org.id) == {}


def test_a_list_is_kept_in_its_order(api: Api, epochs_to_bump: list[str]) -> None:
    answer = api.send("owner", "PUT", f"{PATH}/member", {"tools": ["b", "a", "b"]})
    assert answer.status_code == 200
    stored = answer.json()
    assert {**stored, "updatedAt": ""} == {"vendor": "acme", "role": "member", "tools": ["b", "a"], "updatedAt": ""}
    api.send("owner", "PUT", f"{PATH}/admin", {"tools": []})
    assert [(each["role"], each["tools"]) for each in api.get("admin", PATH)] == [("admin", []), ("member", ["b", "a"])]
    assert api.get("admin", PATH)[0]["updatedBy"] == str(api.cast.user("owner").id)
    assert allowlists(api.cast.org.id) == {
        ("acme", "member"): frozenset({"a", "b"}),
        ("acme", "admin"): frozenset(),
    }
    assert allowlists(api.cast.other_org.id) == {}
    assert epochs_to_bump == [f"org:{api.cast.org.id}"] * 2


def test_clearing_brings_everything_back(api: Api) -> None:
    api.send("owner", "PUT", f"{PATH}/member", {"tools": ["a"]})
    for _ in range(2):
        assert api.send("owner", "DELETE", f"{PATH}/member").status_code == 204
    assert api.get("admin", PATH) == []
    assert api.events() == ["tool_access.updated", "tool_access.cleared"]


@pytest.mark.parametrize(
    ("tools", "member"),
    [
        (None, "tools"),
        ("a", "tools"),
        ({"a": 1}, "tools"),
        ([1], "tools.0"),
        (["a", None], "tools.1"),
        ([""], "tools.0"),
        (["x" * 129], "tools.0"),
        (["a\nb"], "tools"),
        (["x"] * 1001, "tools"),
    ],
)
def test_a_bad_list_changes_nothing(api: Api, tools: object, member: str) -> None:
    api.send("owner", "PUT", f"{PATH}/member", {"tools": ["a"]})
    assert api.faults("owner", "PUT", f"{PATH}/member", {"tools": tools}) == {member}
    assert api.faults("owner", "PUT", f"{PATH}/member", {}) == {"tools"}
    assert ToolAllowlist.objects.get().tools == ["a"]


def test_unknown_vendors_and_roles(api: Api) -> None:
    for path in ("/orgs/{org}/tool-access/nowhere/member", f"{PATH}/root", f"{PATH}/MEMBER"):
        assert api.refused("owner", "PUT", path, {"tools": []}) == (404, "not_found")
        assert api.refused("owner", "DELETE", path) == (404, "not_found")
    assert api.refused("owner", "GET", "/orgs/{org}/tool-access/nowhere") == (404, "not_found")
    assert not ToolAllowlist.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_only_an_owner_changes_lists(api: Api, who: str, status: int) -> None:
    assert api.refused(who, "PUT", f"{PATH}/member", {"tools": []})[0] == status
    assert api.refused(who, "DELETE", f"{PATH}/member")[0] == status
    assert not ToolAllowlist.objects.exists()
    if who != "admin":
        assert api.refused(who, "GET", PATH)[0] == status
