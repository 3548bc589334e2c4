"""GET, POST /api/orgs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AdminAuditEntry
from billing.models import Subscription
from gateway.coordination import backend, epochs
from orgs.models import Membership, Organization, User
from orgs.services.organizations import delete_organization
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


def test_many_organizations_are_listed_in_as_many_queries_as_one(
    api: Api, settings: LazySettings, django_assert_num_queries: Any
) -> None:
    settings.BILLING_MODE = "manual"
    owner = api.cast.user("owner")
    api.get("owner", "/orgs")
    with CaptureQueriesContext(connection) as one:
        assert len(api.get("owner", "/orgs")) == 1
    for number in range(10):
        made = Organization.objects.create(name=f"More {number}")
        Membership.objects.create(organization=made, user=owner, role="owner")
        if number % 2:
            Subscription.objects.create(organization=made, status="active")
    with django_assert_num_queries(len(one)):
        listed = api.get("owner", "/orgs")
    assert [each["subscriptionStatus"] for each in listed] == ["lapsed"] + ["lapsed", "active"] * 5


def test_the_end_of_a_large_organization_is_notified_in_batches(
    api: Api, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    parts: list[list[str]] = []

    class Store:
        def bump_epochs(self, names: Sequence[str]) -> None:
            parts.append(list(names))

    monkeypatch.setattr(backend, "current", Store)
    people = User.objects.bulk_create(User(email=f"p{number}@example.com") for number in range(1_200))
    Membership.objects.bulk_create(Membership(organization=api.cast.org, user=person) for person in people)
    with django_capture_on_commit_callbacks(execute=True):
        delete_organization(actor=api.cast.user("owner"), organization=api.cast.org)
    notified = [name for part in parts for name in part]
    assert max(map(len, parts)) <= 500
    assert {epochs.subject(str(person.id)) for person in people} <= set(notified)
    assert epochs.organization(api.cast.org.id) in notified
    assert epochs.organization(api.cast.other_org.id) not in notified
