"""GET, PUT, DELETE /api/orgs/:orgId/service-clients/:clientId/item-access/:vendor[/:kind]; the list of tools."""

from __future__ import annotations

import pytest

from audit.models import AdminAuditEntry
from oauth_ext.models import Client, ServiceClientItemAllowlist
from oauth_ext.services.service_client_item_lists import clear_client_item_list, set_client_item_list
from orgs.errors import AllowlistChanged
from tests.api.oauth_ext.conftest import make_service
from tests.factories.api import Api

pytestmark = pytest.mark.usefixtures("vendors")


@pytest.fixture
def client(api: Api) -> Client:
    return make_service(api.cast).client


def path_of(client: Client, kind: str = "", vendor: str = "acme") -> str:
    lists = f"/orgs/{{org}}/service-clients/{client.client_id}/item-access/{vendor}"
    return f"{lists}/{kind}" if kind else lists


def test_a_list_is_kept_and_removed(api: Api, client: Client, epochs_to_bump: list[str]) -> None:
    other = make_service(api.cast, name="other bot").client
    epochs_to_bump.clear()
    answer = api.send("owner", "PUT", path_of(client, "resources"), {"entries": ["b:1", "a:{x}", "b:1"]})
    stored = answer.json()
    assert (answer.status_code, bool(stored.pop("updatedAt"))) == (200, True)
    expected = {"vendor": "acme", "client_id": client.client_id, "kind": "resources", "entries": ["b:1", "a:{x}"]}
    assert stored == expected
    (only,) = api.get("admin", path_of(client))
    assert (only["kind"], only["entries"], only["updatedBy"]) == (
        *("resources", ["b:1", "a:{x}"]),
        str(api.cast.user("owner").id),
    )
    assert api.get("admin", path_of(other)) == []
    for _ in range(2):
        assert api.send("owner", "DELETE", path_of(client, "resources")).status_code == 204
    assert api.get("admin", path_of(client)) == []
    assert epochs_to_bump == [f"subject:{client.subject}"] * 2
    entries = AdminAuditEntry.objects.filter(event_type__startswith="item_access").order_by("id")
    assert [(each.event_type, each.target_id, each.metadata.get("entries")) for each in entries] == [
        ("item_access.updated", str(client.id), ["b:1", "a:{x}"]),
        ("item_access.cleared", str(client.id), None),
    ]


def test_bad_lists_and_unknown_ones(api: Api, client: Client) -> None:
    assert api.faults("owner", "PUT", path_of(client, "resources"), {"entries": ["{+any}"]}) == {"entries"}
    assert api.faults("owner", "PUT", path_of(client, "prompts"), {"entries": "x"}) == {"entries"}
    for path in (path_of(client, "tools"), path_of(client, "prompts", "nowhere")):
        assert api.refused("owner", "PUT", path, {"entries": []}) == (404, "not_found")
        assert api.refused("owner", "DELETE", path) == (404, "not_found")
    assert api.refused("owner", "GET", path_of(client, vendor="nowhere")) == (404, "not_found")
    assert not ServiceClientItemAllowlist.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_only_an_owner_changes_lists(api: Api, client: Client, who: str, status: int) -> None:
    path = path_of(client, "prompts")
    assert api.refused(who, "PUT", path, {"entries": []})[0] == status
    assert api.refused(who, "DELETE", path)[0] == status
    assert not ServiceClientItemAllowlist.objects.exists()


def test_another_organizations_client(api: Api, client: Client) -> None:
    path = path_of(client, "prompts").replace("{org}", str(api.cast.other_org.id))
    assert api.refused("other_owner", "PUT", path, {"entries": []}) == (404, "not_found")
    assert not ServiceClientItemAllowlist.objects.exists()


def test_an_edit_of_an_older_list(api: Api, client: Client) -> None:
    whose = {"actor": api.cast.user("owner"), "organization": api.cast.org, "client": client, "vendor": "acme"}
    row = set_client_item_list(**whose, kind="prompts", entries=["a"], seen_version="")
    with pytest.raises(AllowlistChanged):
        set_client_item_list(**whose, kind="prompts", entries=["b"], seen_version="")
    with pytest.raises(AllowlistChanged):
        clear_client_item_list(**whose, kind="prompts", seen_version="x")
    clear_client_item_list(**whose, kind="prompts", seen_version=row.version)


def test_the_short_list_is_a_setting(api: Api, client: Client, epochs_to_bump: list[str]) -> None:
    path = f"/orgs/{{org}}/service-clients/{client.client_id}"
    assert api.faults("admin", "PATCH", path, {"compact_list": "yes"}) == {"compact_list"}
    epochs_to_bump.clear()
    for wanted in (True, True, False):
        answer = api.send("admin", "PATCH", path, {"compact_list": wanted})
        assert (answer.status_code, answer.json()["compact_list"]) == (200, wanted)
    assert epochs_to_bump == [f"subject:{client.subject}"] * 2
    entries = AdminAuditEntry.objects.filter(event_type="service_client.updated").order_by("id")
    assert [(each.metadata["compact_list"], each.metadata["former_compact_list"]) for each in entries] == [
        *((True, False), (False, True))
    ]
    for who, status in (("member", 403), ("other_owner", 404), ("nobody", 401)):
        assert api.refused(who, "PATCH", path, {"compact_list": True})[0] == status
    assert not Client.objects.get(pk=client.pk).lists_compactly
