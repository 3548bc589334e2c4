"""GET, POST /api/orgs."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from audit.models import AdminAuditEntry
from orgs.models import Membership, Organization
from tests.factories.api import Api


def test_an_organization_belongs_to_who_made_it(api: Api) -> None:
    answer = api.send("stranger", "POST", "/orgs", {"name": "  Initech ", "id": "x", "role": "member"})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["role"], made["settings"]) == ("Initech", "owner", {"defaultServerAccess": "none"})
    assert made["subscriptionStatus"] == "active"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", made["createdAt"])
    assert set(made) == {"id", "name", "settings", "role", "subscriptionStatus", "createdAt"}
    assert AdminAuditEntry.objects.get(org_id=made["id"]).event_type == "organization.created"
    assert api.get("stranger", "/orgs") == [made]


def test_the_list_is_the_callers_own(api: Api) -> None:
    assert [each["name"] for each in api.get("admin", "/orgs")] == ["Acme"]
    assert [each["role"] for each in api.get("other_owner", "/orgs")] == ["owner"]
    assert api.get("stranger", "/orgs") == []
    assert api.refused("nobody", "GET", "/orgs") == (401, "unauthenticated")


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_is_said(api: Api) -> None:
    assert api.get("owner", "/orgs")[0]["subscriptionStatus"] == "lapsed"


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "  "}, {"name": None}, {"name": 5}, {"name": "x" * 101}])
def test_a_name_is_needed(api: Api, body: object) -> None:
    assert api.faults("stranger", "POST", "/orgs", body) == {"name"}
    assert Organization.objects.count() == 2


def test_one_person_owns_so_many_and_no_more(api: Api) -> None:
    stranger = api.cast.user("stranger")
    for number in range(settings.ORGANIZATIONS_PER_PERSON):
        organization = Organization.objects.create(name=f"Org {number}")
        Membership.objects.create(organization=organization, user=stranger, role="owner")
    assert api.refused("stranger", "POST", "/orgs", {"name": "One more"}) == (409, "org_limit")
    assert api.refused("nobody", "POST", "/orgs", {"name": "One more"}) == (401, "unauthenticated")
