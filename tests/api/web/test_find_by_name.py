"""`?name=` finds the id of what exists."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from credentials.credential_scope import CredentialScope
from orgs.services.teams import create_team
from tests.factories.api import Api
from tests.factories.catalog import load_vendors
from tests.factories.tenant import Tenant, connect, make_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant(api: Api) -> Tenant:
    """The first organization has an agent, two teams and a named key; the other one has a team of the same name."""
    load_vendors("acme", "globex")
    for name in ("Night shift", "Night shift 2"):
        create_team(actor=api.cast.user("owner"), organization=api.cast.org, name=name)
    create_team(actor=api.cast.user("other_owner"), organization=api.cast.other_org, name="Night shift")
    return make_tenant(api.cast.org, api.cast.user("owner"))


def found(api: Api, path: str, name: str, member: str = "name") -> list[str]:
    return [each[member] for each in api.get("owner", f"{path}?name={quote(name)}")]


@pytest.mark.usefixtures("tenant")
def test_teams(api: Api) -> None:
    assert found(api, "/orgs/{org}/teams", "Night shift") == ["Night shift"]
    assert found(api, "/orgs/{org}/teams", "night") == []
    assert found(api, "/orgs/{org}/teams", "") == []
    assert len(api.get("owner", "/orgs/{org}/teams")) == 2


def test_service_clients(api: Api, tenant: Tenant) -> None:
    name = tenant.client.name
    assert found(api, "/orgs/{org}/service-clients", name, "client_id") == [tenant.client.client_id]
    assert found(api, "/orgs/{org}/service-clients", f"{name}x") == []


def test_members_by_name_and_address(api: Api) -> None:
    for name in ("Member", "member@example.com", "MEMBER@example.com"):
        assert found(api, "/orgs/{org}/members", name, "email") == ["member@example.com"]
    assert found(api, "/orgs/{org}/members", "Other Owner") == [], "of another organization"


@pytest.mark.usefixtures("tenant")
def test_vendors_and_named_keys(api: Api) -> None:
    assert found(api, "/vendors", "acme", "slug") == ["acme"]
    assert found(api, "/vendors", "Acme", "slug") == ["acme"]
    connect(api.cast.org, api.cast.user("owner"), "acme", CredentialScope.NAMED_KEY, {"name": "EU"}, apiKey="key")
    assert found(api, "/orgs/{org}/credentials/acme/keys", "EU") == ["EU"]
    assert found(api, "/orgs/{org}/credentials/acme/keys", "US") == []


@pytest.mark.usefixtures("tenant")
def test_bad_names_are_refused_and_parts_keep_the_name(api: Api) -> None:
    for query in ("name=a&name=b", "name=a%00b", f"name={'a' * 70_000}"):
        for things in ("teams", "members"):
            assert api.refused("owner", "GET", f"/orgs/{{org}}/{things}?{query}") == (400, "invalid")
    create_team(actor=api.cast.user("owner"), organization=api.cast.org, name="Day shift")
    first = api.send("owner", "GET", "/orgs/{org}/teams?name=Night%20shift&limit=1")
    assert [each["name"] for each in json.loads(first.content)] == ["Night shift"]
    assert "Link" not in first.headers or 'rel="help"' in first["Link"]
