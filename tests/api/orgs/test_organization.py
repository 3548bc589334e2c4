"""GET, PATCH, DELETE /api/orgs/:orgId."""

from __future__ import annotations

import pytest

from audit.models import AdminAuditEntry
from credentials.credential_scope import CredentialScope
from credentials.models import Credential, OrganizationDataKey
from oauth_ext.models import AgentKey, Client
from orgs.models import Organization
from tests.factories.api import Api
from tests.factories.credentials import make_setting
from tests.factories.tenant import make_tenant


def test_members_see_it_with_their_role(api: Api) -> None:
    for who in ("owner", "admin", "member"):
        found = api.get(who, "/orgs/{org}")
        assert (found["id"], found["name"], found["role"]) == (str(api.cast.org.id), "Acme", who)


def test_a_foreign_one_looks_like_none(api: Api) -> None:
    bodies = []
    for path in ("/orgs/{org}", "/orgs/00000000-0000-4000-8000-000000000000", "/orgs/no-id", "/orgs/%7Borg%7D"):
        answer = api.send("other_owner", "GET", path)
        assert answer.status_code == 404
        bodies.append({**answer.json(), "requestId": ""})
    assert all(body == bodies[0] for body in bodies)


def test_an_owner_renames_it(api: Api, epochs_to_bump: list[str]) -> None:
    answer = api.send("owner", "PATCH", "/orgs/{org}", {"name": "Acme 2", "id": "x", "subscription": "active"})
    assert (answer.status_code, answer.json()["name"], answer.json()["id"]) == (200, "Acme 2", str(api.cast.org.id))
    assert api.events() == ["organization.updated"]
    assert f"org:{api.cast.org.id}" in epochs_to_bump
    assert Organization.objects.get(pk=api.cast.other_org.pk).name == "Globex"


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": 1}, {"name": "a\nb"}])
def test_a_bad_name_changes_nothing(api: Api, body: object) -> None:
    assert api.faults("owner", "PATCH", "/orgs/{org}", body) == {"name"}
    assert api.get("owner", "/orgs/{org}")["name"] == "Acme"
    assert api.events() == []


@pytest.mark.parametrize(("who", "refusal"), [("admin", (403, "forbidden")), ("other_owner", (404, "not_found"))])
def test_others_neither_rename_nor_delete(api: Api, who: str, refusal: tuple[int, str]) -> None:
    assert api.refused(who, "PATCH", "/orgs/{org}", {"name": "Mine"}) == refusal
    assert api.refused(who, "DELETE", "/orgs/{org}") == refusal
    assert Organization.objects.filter(name="Acme").exists()


def test_deleting_leaves_nothing_but_the_log(api: Api, epochs_to_bump: list[str]) -> None:
    setting = make_setting(api.cast)
    setting.store_everywhere()
    setting.store(CredentialScope.ORGANIZATION, organization=api.cast.other_org)
    make_tenant(api.cast.org, api.cast.user("owner"))
    org_id, member_id = api.cast.org.id, api.cast.user("member").id
    assert api.send("owner", "DELETE", "/orgs/{org}").status_code == 204
    assert not Organization.objects.filter(pk=org_id).exists()
    assert not OrganizationDataKey.objects.filter(organization_id=org_id).exists()
    assert not Client.objects.filter(organization_id=org_id).exists()
    assert not AgentKey.objects.exists()
    assert Credential.objects.get().organization_id == api.cast.other_org.id
    assert AdminAuditEntry.objects.filter(org_id=org_id, event_type="organization.deleted").count() == 1
    assert {f"org:{org_id}", f"subject:{member_id}"} <= set(epochs_to_bump)
    assert api.refused("owner", "DELETE", "/orgs/{org}") == (404, "not_found")
    assert api.get("other_owner", "/orgs/{other}")["name"] == "Globex"
