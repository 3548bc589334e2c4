"""A service client is restricted to a list, or uses every vendor of the organization: never by accident. Spec: D173"""

from __future__ import annotations

from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from audit.models import AdminAuditEntry
from oauth_ext.models import Client, ServiceClientVendor
from oauth_ext.selectors import restricted_vendors
from oauth_ext.services.service_client_vendors import add_client_vendor, remove_client_vendor, replace_client_vendors
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.credentials import make_service_client, make_setting
from tests.factories.races import refusals_at_once

NONE: frozenset[str] = frozenset()


@pytest.fixture
def client(api: Api) -> Client:
    """A service client of the first organization, which has connected `acme`."""
    load_vendors("acme", "globex")
    setting = make_setting(api.cast)
    setting.store()
    return setting.service_client


def path(client: Client, vendor: str = "") -> str:
    base = f"/orgs/{{org}}/members/{client.client_id}/server-access"
    return f"{base}/{vendor}" if vendor else base


def is_shown_restricted(api: Api) -> bool:
    [listed] = api.get("admin", "/orgs/{org}/service-clients")
    return bool(listed["restricted"])


def reasons(api: Api, client: Client) -> list[tuple[str, str]]:
    return [(each["vendor"], each["source"]) for each in api.get("admin", path(client))]


def test_a_new_client_is_unrestricted(api: Api, client: Client) -> None:
    assert restricted_vendors(client.pk) is None
    assert not is_shown_restricted(api)
    assert reasons(api, client) == [("acme", "default")]


def test_the_first_vendor_restricts_and_removing_the_last_one_leaves_none(api: Api, client: Client) -> None:
    assert api.send("admin", "PUT", path(client, "globex")).status_code == 200
    assert restricted_vendors(client.pk) == {"globex"}
    assert is_shown_restricted(api)
    assert reasons(api, client) == [("globex", "direct")]
    for _ in range(2):  # a relation's end is no error the second time
        assert api.send("admin", "DELETE", path(client, "globex")).status_code == 204
        assert restricted_vendors(client.pk) == NONE
        assert is_shown_restricted(api)
        assert reasons(api, client) == []


def test_an_empty_list_allows_none_and_null_lifts_the_restriction(api: Api, client: Client) -> None:
    for wanted, granted in (([], NONE), (["globex", "acme"], {"acme", "globex"}), ([], NONE), (None, None)):
        answer = api.send("admin", "PUT", path(client), {"vendors": wanted})
        assert answer.status_code == 200
        assert answer.json() == {"userId": str(client.id), "vendors": sorted(wanted) if wanted else wanted}
        assert restricted_vendors(client.pk) == granted
        assert is_shown_restricted(api) is (wanted is not None)
    assert not ServiceClientVendor.objects.exists()


def test_each_change_is_recorded_and_counts_at_once(api: Api, client: Client, epochs_to_bump: list[str]) -> None:
    for wanted in ([], [], ["acme"], None, None):
        assert api.send("admin", "PUT", path(client), {"vendors": wanted}).status_code == 200
    rows = AdminAuditEntry.objects.filter(event_type="server_access.replaced").order_by("timestamp", "id")
    changes = [(row.metadata["were"], row.metadata["vendors"]) for row in rows]
    assert changes == [(None, []), ([], ["acme"]), (["acme"], None)]
    assert epochs_to_bump == [f"subject:{client.subject}"] * 3


def test_only_a_service_client_can_be_unrestricted(api: Api, client: Client) -> None:
    member = f"/orgs/{{org}}/members/{api.cast.user('member').id}/server-access"
    assert api.send("admin", "PUT", f"{member}/acme").status_code == 200
    refused = api.send("admin", "PUT", member, {"vendors": None})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["vendors"])
    assert api.send("admin", "PUT", path(client), {}).status_code == 400
    assert [each["vendor"] for each in api.get("admin", member)] == ["acme"]
    assert restricted_vendors(client.pk) is None


def test_a_wrong_vendor_changes_nothing(api: Api, client: Client) -> None:
    assert api.refused("admin", "PUT", path(client), {"vendors": ["nothing"]})[0] == 400
    assert api.refused("admin", "PUT", path(client, "nothing"))[0] == 404
    assert api.refused("admin", "DELETE", path(client, "nothing"))[0] == 404
    assert restricted_vendors(client.pk) is None


def test_the_other_organization_and_members_change_nothing(api: Api, client: Client) -> None:
    assert api.refused("other_owner", "PUT", path(client), {"vendors": []})[0] == 404
    assert api.refused("member", "PUT", path(client), {"vendors": []})[0] == 403
    assert restricted_vendors(client.pk) is None
    foreign = make_service_client(api.cast.other_org, "Foreign")
    assert api.send("admin", "PUT", path(client), {"vendors": []}).status_code == 200
    assert restricted_vendors(foreign.pk) is None


def test_what_is_gone_or_half_written_is_restricted(api: Api, client: Client) -> None:
    ServiceClientVendor.objects.create(client=client, vendor="acme")  # by a process of the version before
    assert restricted_vendors(client.pk) == {"acme"}
    client.delete()
    assert restricted_vendors(client.pk) == NONE


def test_the_migration_keeps_what_rows_mean(api: Api, client: Client) -> None:
    listed = make_service_client(api.cast.org, "Listed")
    ServiceClientVendor.objects.create(client=listed, vendor="acme")
    loader = MigrationLoader(connection, replace_migrations=False)
    at_the_time = loader.project_state(("oauth_ext", "0002_client_restricted")).apps
    import_module("oauth_ext.migrations.0002_client_restricted").restrict_clients_with_a_list(at_the_time, None)
    assert list(Client.objects.filter(restricted=True)) == [listed]
    assert (restricted_vendors(client.pk), restricted_vendors(listed.pk)) == (None, {"acme"})


def test_changes_at_once_leave_one_of_the_states_that_were_asked_for(committed_cast: Cast) -> None:
    load_vendors("acme", "globex")
    client = make_service_client(committed_cast.org)
    facts = {"actor": committed_cast.user("owner"), "organization": committed_cast.org, "client": client}
    codes = refusals_at_once(
        *[lambda: add_client_vendor(**facts, vendor="acme")] * 4,
        *[lambda: remove_client_vendor(**facts, vendor="acme")] * 4,
        *[lambda: replace_client_vendors(**facts, vendors=None)] * 4,
        *[lambda: replace_client_vendors(**facts, vendors=["globex"])] * 4,
    )
    assert codes == [""] * 16
    client.refresh_from_db()
    listed = set(ServiceClientVendor.objects.values_list("vendor", flat=True))
    assert client.restricted or not listed, "an unrestricted client has no list"
    assert restricted_vendors(client.pk) == (listed if client.restricted else None)
