"""GET, PUT, DELETE /api/orgs/:orgId/service-clients/:clientId/tool-access[/:vendor]."""

from __future__ import annotations

import pytest

from audit.models import AdminAuditEntry
from oauth_ext.models import Client, ServiceClientAllowlist
from oauth_ext.services.service_client_allowlists import clear_client_allowlist, set_client_allowlist
from orgs.errors import AllowlistChanged
from orgs.models import KnownTool
from orgs.services.tool_approval import Review
from tests.api.oauth_ext.conftest import make_service
from tests.factories.api import Api

pytestmark = pytest.mark.usefixtures("vendors")


@pytest.fixture
def client(api: Api) -> Client:
    return make_service(api.cast).client


def path_of(client: Client, vendor: str = "acme", org: str = "{org}") -> str:
    lists = f"/orgs/{org}/service-clients/{client.client_id}/tool-access"
    return f"{lists}/{vendor}" if vendor else lists


def tools_of(client: Client) -> dict[str, list[str]]:
    return dict(ServiceClientAllowlist.objects.filter(client=client).values_list("vendor", "tools"))


def test_no_list_means_every_tool(api: Api, client: Client) -> None:
    assert api.get("admin", path_of(client)) == []
    assert api.get("admin", path_of(client, "")) == []


def test_a_list_is_kept_in_its_order(api: Api, client: Client, epochs_to_bump: list[str]) -> None:
    other = make_service(api.cast, name="other bot").client
    epochs_to_bump.clear()
    answer = api.send("owner", "PUT", path_of(client), {"tools": ["b", "a", "b"]})
    assert answer.status_code == 200
    stored = answer.json()
    assert stored.pop("updatedAt")
    assert stored == {"vendor": "acme", "client_id": client.client_id, "tools": ["b", "a"]}
    # Its id names it as well.
    by_id = path_of(client, "globex").replace(client.client_id, str(client.id))
    assert api.send("owner", "PUT", by_id, {"tools": []}).status_code == 200
    assert [(each["vendor"], each["tools"]) for each in api.get("admin", path_of(client, ""))] == [
        ("acme", ["b", "a"]),
        ("globex", []),
    ]
    (only,) = api.get("admin", path_of(client))
    assert set(only) == {"vendor", "tools", "updatedAt", "updatedBy"}
    assert only["updatedBy"] == str(api.cast.user("owner").id)
    assert epochs_to_bump == [f"subject:{client.subject}"] * 2
    assert api.get("admin", path_of(other, "")) == []


def test_clearing_allows_every_tool_again(api: Api, client: Client) -> None:
    api.send("owner", "PUT", path_of(client), {"tools": ["a"]})
    for _ in range(2):
        assert api.send("owner", "DELETE", path_of(client)).status_code == 204
    assert api.get("admin", path_of(client)) == []
    assert api.events() == ["service_client.created", "tool_access.updated", "tool_access.cleared"]
    entry = AdminAuditEntry.objects.get(event_type="tool_access.updated")
    assert (entry.target_id, entry.target_label) == (str(client.id), client.name)
    assert entry.metadata == {"client_id": client.client_id, "vendor": "acme", "tools": ["a"]}


@pytest.mark.parametrize(
    ("tools", "member"),
    [
        (None, "tools"),
        ("a", "tools"),
        ([1], "tools.0"),
        ([""], "tools.0"),
        (["a\nb"], "tools"),
        (["x"] * 1001, "tools"),
    ],
)
def test_a_bad_list_changes_nothing(api: Api, client: Client, tools: object, member: str) -> None:
    api.send("owner", "PUT", path_of(client), {"tools": ["a"]})
    assert api.faults("owner", "PUT", path_of(client), {"tools": tools}) == {member}
    assert api.faults("owner", "PUT", path_of(client), {}) == {"tools"}
    assert tools_of(client) == {"acme": ["a"]}


def test_unknown_vendors_and_clients_and_those_of_others(api: Api, client: Client) -> None:
    foreign = make_service(api.cast, organization=api.cast.other_org).client
    for path in (path_of(client, "nowhere"), path_of(foreign), path_of(client).replace("svc_", "svc_x")):
        assert api.refused("owner", "PUT", path, {"tools": []}) == (404, "not_found")
        assert api.refused("owner", "DELETE", path) == (404, "not_found")
        assert api.refused("owner", "GET", path) == (404, "not_found")
    assert api.refused("owner", "PUT", path_of(foreign, ""), {"mode": "read_only"}) == (404, "not_found")
    assert api.refused("owner", "GET", path_of(foreign, "")) == (404, "not_found")
    assert not ServiceClientAllowlist.objects.exists()
    assert not Client.objects.exclude(tool_mode="all").exists()


@pytest.mark.parametrize(("who", "status"), [("admin", 403), ("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_only_an_owner_changes_lists_and_mode(api: Api, client: Client, who: str, status: int) -> None:
    assert api.refused(who, "PUT", path_of(client), {"tools": []})[0] == status
    assert api.refused(who, "DELETE", path_of(client))[0] == status
    assert api.refused(who, "PUT", path_of(client, ""), {"mode": "read_only"})[0] == status
    assert not ServiceClientAllowlist.objects.exists()
    assert Client.objects.get(pk=client.pk).tool_mode == "all"
    if who != "admin":
        assert api.refused(who, "GET", path_of(client))[0] == status
        assert api.refused(who, "GET", path_of(client, ""))[0] == status


def test_the_mode_is_kept_beside_the_lists(api: Api, client: Client, epochs_to_bump: list[str]) -> None:
    api.send("owner", "PUT", path_of(client), {"tools": ["a"]})
    epochs_to_bump.clear()
    for _ in range(2):
        answer = api.send("owner", "PUT", path_of(client, ""), {"mode": "read_only"})
        assert (answer.status_code, answer.json()) == (200, {"mode": "read_only"})
    assert epochs_to_bump == [f"subject:{client.subject}"]
    (listed,) = api.get("admin", "/orgs/{org}/service-clients")
    assert listed["tool_mode"] == "read_only"
    assert tools_of(client) == {"acme": ["a"]}
    assert api.send("owner", "PUT", path_of(client, ""), {"mode": "all"}).json() == {"mode": "all"}
    entries = AdminAuditEntry.objects.filter(event_type="tool_access.updated").order_by("timestamp", "id")
    assert [entry.metadata.get("mode") for entry in entries] == [None, "read_only", "all"]


@pytest.mark.parametrize("mode", ["", "ALL", "write", 1, None])
def test_an_unknown_mode_changes_nothing(api: Api, client: Client, mode: object) -> None:
    assert api.faults("owner", "PUT", path_of(client, ""), {"mode": mode}) == {"mode"}
    assert Client.objects.get(pk=client.pk).tool_mode == "all"


def test_an_edit_that_began_before_another_one_is_refused(api: Api, client: Client) -> None:
    whose = {"actor": api.cast.user("owner"), "organization": api.cast.org, "client": client, "vendor": "acme"}
    first = set_client_allowlist(**whose, tools=["a"], seen_version="")
    for refused in (
        lambda: set_client_allowlist(**whose, tools=["b"], seen_version=""),
        lambda: clear_client_allowlist(**whose, seen_version=""),
    ):
        with pytest.raises(AllowlistChanged, match="Owner changed"):
            refused()
    assert tools_of(client) == {"acme": ["a"]}
    clear_client_allowlist(**whose, seen_version=first.version)
    assert tools_of(client) == {}


def test_only_a_list_that_was_made_beside_a_review_approves_tools(api: Api, client: Client) -> None:
    row = KnownTool.objects.create(organization=api.cast.org, vendor="acme", tool="a", seen_sha256=b"1")
    whose = {"actor": api.cast.user("owner"), "organization": api.cast.org, "client": client, "vendor": "acme"}
    set_client_allowlist(**whose, tools=["a"])
    assert not KnownTool.objects.get(pk=row.pk).is_approved
    from orgs.services.tool_approval import fingerprint_of

    set_client_allowlist(**whose, tools=["a"], review=Review(fingerprint_of([row]), frozenset({str(row.pk)})))
    assert KnownTool.objects.get(pk=row.pk).is_approved


def test_a_list_ends_with_its_client(api: Api, client: Client) -> None:
    api.send("owner", "PUT", path_of(client), {"tools": ["a"]})
    assert api.send("admin", "DELETE", f"/orgs/{{org}}/service-clients/{client.client_id}").status_code == 204
    assert not ServiceClientAllowlist.objects.exists()
