"""PATCH /api/orgs/:orgId/service-clients/:clientId: name, expiry, responsible member."""

from __future__ import annotations

from datetime import timedelta

import pytest

from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import Client
from oauth_ext.services.agent_keys import mint_agent_key
from orgs.models import Membership, User
from orgs.services.members import remove_member
from tests.api.oauth_ext.conftest import Service, make_service
from tests.factories.api import Api
from tests.factories.bearers import load_identity


def path_of(service: Service) -> str:
    return f"/orgs/{{org}}/service-clients/{service.client.client_id}"


@pytest.mark.usefixtures("stopped_clock")
def test_each_change_is_made_and_recorded(api: Api, epochs_to_bump: list[str]) -> None:
    service, other = make_service(api.cast), make_service(api.cast, name="other")
    epochs_to_bump.clear()
    until = clock.now() + timedelta(days=300)
    before, member = Client.objects.get(pk=service.client.pk), api.cast.user("member")
    body = {"name": " Triage bot ", "expires_at": clock.rfc3339(until), "responsible_user_id": str(member.id)}
    answer = api.send("admin", "PATCH", path_of(service), body)
    assert answer.status_code == 200
    changed = answer.json()
    assert changed == {**changed, **body, "name": "Triage bot"}
    assert changed in api.get("admin", "/orgs/{org}/service-clients")
    entry = AdminAuditEntry.objects.get(event_type="service_client.updated")
    assert (entry.actor_id, entry.target_label) == (str(api.cast.user("admin").id), "Triage bot")
    assert entry.metadata == {
        "client_id": service.client.client_id,
        "name": "Triage bot",
        "former_name": "build bot",
        "expires_at": body["expires_at"],
        "former_expires_at": clock.rfc3339(before.expires_at),
        "responsible_user_id": str(member.id),
        "former_responsible_user_id": str(api.cast.user("owner").id),
    }
    assert epochs_to_bump == [f"subject:{service.client.subject}"]
    assert Client.objects.get(pk=other.client.pk).name == "other"


def test_what_is_missing_stays(api: Api) -> None:
    service = make_service(api.cast)
    before = api.get("admin", "/orgs/{org}/service-clients")
    for body in ({}, {"name": "build bot"}, {"unknown": 1}):
        assert api.send("admin", "PATCH", path_of(service), body).status_code == 200
    assert api.get("admin", "/orgs/{org}/service-clients") == before
    assert "service_client.updated" not in api.events()
    assert api.send("admin", "PATCH", path_of(service), {"responsible_user_id": None}).status_code == 200
    (changed,) = api.get("admin", "/orgs/{org}/service-clients")
    assert changed == {**before[0], "responsible_user_id": None}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"name": ""}, {"name"}),
        ({"name": "x" * 101}, {"name"}),
        ({"name": "a\u202eb"}, {"name"}),
        ({"name": 1}, {"name"}),
        ({"expires_at": "soon"}, {"expires_at"}),
        ({"expires_at": None}, {"expires_at"}),
        ({"expires_at": 1893456000}, {"expires_at"}),
        ({"expires_at": "2020-01-01"}, {"expires_at"}),
        ({"expires_at": "9999-12-31T23:59:59Z"}, {"expires_at"}),
        ({"responsible_user_id": "me"}, {"responsible_user_id"}),
        ({"responsible_user_id": "00000000-0000-0000-0000-000000000000"}, {"responsible_user_id"}),
        ({"name": "", "expires_at": "x", "responsible_user_id": 1.5}, {"name", "expires_at", "responsible_user_id"}),
        ({"name": "New", "expires_at": "2020-01-01"}, {"expires_at"}),
    ],
)
def test_a_bad_change_changes_nothing(api: Api, body: dict[str, object], faults: set[str]) -> None:
    service = make_service(api.cast)
    before = list(Client.objects.values())
    assert api.faults("admin", "PATCH", path_of(service), body) == faults
    assert list(Client.objects.values()) == before
    assert api.events() == ["service_client.created"]


def test_only_active_members_of_the_organization_are_responsible(api: Api) -> None:
    service = make_service(api.cast)
    User.objects.filter(pk=api.cast.user("member").pk).update(is_active=False)
    for who in ("other_owner", "stranger", "member"):
        body = {"responsible_user_id": str(api.cast.user(who).id)}
        assert api.faults("admin", "PATCH", path_of(service), body) == {"responsible_user_id"}
    assert Client.objects.get(pk=service.client.pk).responsible_person == api.cast.user("owner")


def test_whose_member_leaves_is_nobodys(api: Api) -> None:
    service, second = make_service(api.cast), make_service(api.cast, name="second")
    member = api.cast.user("member")
    api.send("admin", "PATCH", path_of(service), {"responsible_user_id": str(member.id)})
    remove_member(actor=api.cast.user("owner"), organization=api.cast.org, user_id=member.id)
    found = {each["name"]: each["responsible_user_id"] for each in api.get("admin", "/orgs/{org}/service-clients")}
    assert found == {"build bot": None, "second": str(api.cast.user("owner").id)}
    # The rows of a person who comes back are new ones.
    Membership.objects.create(organization=api.cast.org, user=member)
    assert Client.objects.get(pk=service.client.pk).responsible is None
    assert second.token()


def test_an_expired_client_revives(api: Api) -> None:
    service = make_service(api.cast)
    key = mint_agent_key(actor=api.cast.user("owner"), client=service.client).agent_key
    Client.objects.update(expires_at=clock.now() - timedelta(days=1))
    with pytest.raises(InvalidBearer):
        load_identity(key)
    until = clock.rfc3339(clock.now() + timedelta(days=1))
    assert api.send("admin", "PATCH", path_of(service), {"expires_at": until}).json()["expires_at"] == until
    assert load_identity(key).client_pk == service.client.pk
    assert service.token()


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("stranger", 404), ("nobody", 401)])
def test_who_may_change_a_client(api: Api, who: str, status: int) -> None:
    service, foreign = make_service(api.cast), make_service(api.cast, organization=api.cast.other_org)
    assert api.refused(who, "PATCH", path_of(service), {"name": "New"})[0] == status
    assert api.refused("owner", "PATCH", path_of(foreign), {"name": "New"}) == (404, "not_found")
    assert set(Client.objects.values_list("name", flat=True)) == {"build bot"}
