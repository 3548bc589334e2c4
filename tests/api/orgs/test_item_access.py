"""GET /api/orgs/:orgId/item-access/:vendor; PUT, DELETE …/:role/:kind."""

from __future__ import annotations

import pytest

from orgs.allowed_items import AllowedItems
from orgs.models import ItemAllowlist
from orgs.selectors import item_lists
from tests.factories.api import Api

pytestmark = pytest.mark.usefixtures("vendors")
PATH = "/orgs/{org}/item-access/acme"
RESOURCES, PROMPTS = f"{PATH}/member/resources", f"{PATH}/member/prompts"


def test_no_list_means_everything(api: Api) -> None:
    assert api.get("admin", PATH) == []
    assert item_lists(api.cast.org.id) == {}


def test_a_list_is_kept_in_its_order(api: Api, epochs_to_bump: list[str]) -> None:
    answer = api.send("owner", "PUT", RESOURCES, {"entries": ["b:x", "a:{y}", "b:x"]})
    assert answer.status_code == 200
    assert {**answer.json(), "updatedAt": ""} == {
        "vendor": "acme",
        "role": "member",
        "kind": "resources",
        "entries": ["b:x", "a:{y}"],
        "updatedAt": "",
    }
    assert api.send("owner", "PUT", f"{PATH}/admin/prompts", {"entries": []}).status_code == 200
    assert [(each["role"], each["kind"], each["entries"]) for each in api.get("admin", PATH)] == [
        ("admin", "prompts", []),
        ("member", "resources", ["b:x", "a:{y}"]),
    ]
    assert api.get("admin", PATH)[0]["updatedBy"] == str(api.cast.user("owner").id)
    assert item_lists(api.cast.org.id) == {
        ("acme", "member", "resources"): AllowedItems(frozenset({"b:x", "a:{y}"}), ("a:{y}",)),
        ("acme", "admin", "prompts"): AllowedItems(frozenset()),
    }
    assert item_lists(api.cast.other_org.id) == {}
    assert epochs_to_bump == [f"org:{api.cast.org.id}"] * 2


def test_removing_a_list(api: Api) -> None:
    api.send("owner", "PUT", PROMPTS, {"entries": ["a"]})
    for _ in range(2):
        assert api.send("owner", "DELETE", PROMPTS).status_code == 204
    assert api.get("admin", PATH) == []
    assert api.events() == ["item_access.updated", "item_access.cleared"]


@pytest.mark.parametrize(
    ("path", "entries", "member"),
    [
        (RESOURCES, None, "entries"),
        (RESOURCES, "a:b", "entries"),
        (RESOURCES, [1], "entries.0"),
        (RESOURCES, [""], "entries.0"),
        (RESOURCES, ["a:" + "b" * 1_023], "entries.0"),
        (RESOURCES, ["a:\nb"], "entries"),
        (RESOURCES, [f"a:{number}" for number in range(501)], "entries"),
        (RESOURCES, [f"a:{number}{{x}}" for number in range(51)], "entries"),
        (RESOURCES, [f"a:{number}{'b' * 1_000}" for number in range(64)], "entries"),
        (RESOURCES, ["{+any}"], "entries"),
        (RESOURCES, ["a:{x"], "entries"),
        (RESOURCES, ["a:" + "{x}" * 33], "entries"),
        (PROMPTS, ["x" * 129], "entries"),
        (PROMPTS, ["a\nb"], "entries"),
    ],
)
def test_a_bad_list_changes_nothing(api: Api, path: str, entries: object, member: str) -> None:
    api.send("owner", "PUT", path, {"entries": ["a:b"]})
    assert api.faults("owner", "PUT", path, {"entries": entries}) == {member}
    assert api.faults("owner", "PUT", path, {}) == {"entries"}
    assert ItemAllowlist.objects.get().entries == ["a:b"]


def test_unknown_vendors_roles_and_kinds(api: Api) -> None:
    for path in (
        "/orgs/{org}/item-access/nowhere/member/resources",
        f"{PATH}/root/resources",
        f"{PATH}/member/tools",
        f"{PATH}/member/RESOURCES",
    ):
        assert api.refused("owner", "PUT", path, {"entries": []}) == (404, "not_found")
        assert api.refused("owner", "DELETE", path) == (404, "not_found")
    assert api.refused("owner", "GET", "/orgs/{org}/item-access/nowhere") == (404, "not_found")
    assert not ItemAllowlist.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_only_an_owner_changes_lists(api: Api, who: str, status: int) -> None:
    assert api.refused(who, "PUT", RESOURCES, {"entries": []})[0] == status
    assert api.refused(who, "DELETE", RESOURCES)[0] == status
    assert not ItemAllowlist.objects.exists()
    if who != "admin":
        assert api.refused(who, "GET", PATH)[0] == status
