"""GET, POST /api/orgs/:orgId/service-clients; DELETE …/:clientId; POST, DELETE …/:clientId/agent-key."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from audit.models import AdminAuditEntry
from billing.models import Subscription
from gateway.lib import clock
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AgentKey, Client
from tests.factories.api import Api
from tests.factories.bearers import load_identity
from tests.factories.credentials import make_service_client

PATH = "/orgs/{org}/service-clients"


def create(api: Api, **members: Any) -> dict[str, Any]:
    answer = api.send("admin", "POST", PATH, {"name": "Robot", **members})
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


@pytest.mark.usefixtures("stopped_clock")
def test_a_secret_is_shown_once(api: Api) -> None:
    made = create(api, expires_in_days=30)
    assert set(made) == {"id", "name", "client_id", "client_secret", "expires_at", "created_at"}
    assert made["client_id"].startswith("svc_")
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lifetime == timedelta(days=30)
    (listed,) = api.get("admin", PATH)
    assert listed == {
        "id": made["id"],
        "name": "Robot",
        "client_id": made["client_id"],
        "expires_at": made["expires_at"],
        "created_at": made["created_at"],
        "last_used_at": None,
        "agent_key_prefix": None,
        "restricted": False,
        "responsible_user_id": str(api.cast.user("admin").id),
        "previous_secret_ends_at": None,
        "agent_key_created_at": None,
        "previous_agent_key_ends_at": None,
        "tool_mode": "all",
        "acts_for_people": False,
        "compact_list": False,
    }
    assert made["client_secret"] not in str(list(AdminAuditEntry.objects.values()))
    assert made["client_secret"] not in str(list(Client.objects.values()))
    assert api.get("other_owner", "/orgs/{other}/service-clients") == []


def test_ninety_days_by_default_and_expired_ones_stay_listed(api: Api) -> None:
    made = create(api)
    assert 89 <= (datetime.fromisoformat(made["expires_at"]) - clock.now()).days <= 90
    Client.objects.update(expires_at=clock.now() - timedelta(days=1))
    assert [each["id"] for each in api.get("admin", PATH)] == [made["id"]]


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ({}, {"name"}),
        ({"name": "  "}, {"name"}),
        ({"name": "K", "expires_in_days": 0}, {"expires_in_days"}),
        ({"name": "K", "expires_in_days": 366}, {"expires_in_days"}),
        ({"name": "K", "expires_in_days": None}, {"expires_in_days"}),
        ({"name": "K", "expires_in_days": "30"}, {"expires_in_days"}),
        ({"name": "K", "expires_in_days": -1}, {"expires_in_days"}),
        ({"name": "K", "expires_in_days": 1.5}, {"expires_in_days"}),
    ],
)
def test_a_bad_body(api: Api, body: dict[str, Any], members: set[str]) -> None:
    assert api.faults("admin", "POST", PATH, body) == members
    assert not Client.objects.exists()


def test_deleting_by_either_name_and_once(api: Api, epochs_to_bump: list[str]) -> None:
    first, second = create(api), create(api)
    for name in (first["id"], second["client_id"]):
        assert api.send("admin", "DELETE", f"{PATH}/{name}").status_code == 204
        assert api.refused("admin", "DELETE", f"{PATH}/{name}") == (404, "not_found")
    assert f"subject:svc:{api.cast.org.id}:{first['client_id']}" in epochs_to_bump
    assert api.get("admin", PATH) == []


def test_an_agent_key_is_made_rotated_and_revoked(api: Api, epochs_to_bump: list[str]) -> None:
    client = create(api)
    path = f"{PATH}/{client['client_id']}/agent-key"
    assert api.refused("admin", "DELETE", path) == (404, "not_found")
    first = api.send("admin", "POST", path)
    assert first.status_code == 201
    key = first.json()
    assert set(key) == {"agent_key", "prefix", "rotated"}
    assert key["agent_key"].startswith(key["prefix"])
    assert (key["rotated"], api.get("admin", PATH)[0]["agent_key_prefix"]) == (False, key["prefix"])
    assert load_identity(key["agent_key"]).subject == f"svc:{api.cast.org.id}:{client['client_id']}"
    second = api.send("admin", "POST", f"{PATH}/{client['id']}/agent-key").json()
    assert second["rotated"] is True
    with pytest.raises(InvalidBearer):
        load_identity(key["agent_key"])
    assert api.send("admin", "DELETE", path).status_code == 204
    assert api.refused("admin", "DELETE", path) == (404, "not_found")
    with pytest.raises(InvalidBearer):
        load_identity(second["agent_key"])
    assert api.get("admin", PATH)[0]["agent_key_prefix"] is None
    assert api.events()[1:] == ["agent_key.created", "agent_key.rotated", "agent_key.revoked"]
    log = json.dumps([entry.metadata for entry in AdminAuditEntry.objects.all()])
    assert key["agent_key"] not in log
    assert second["agent_key"] not in log


def test_an_expired_client_gets_no_key(api: Api) -> None:
    client = create(api)
    Client.objects.update(expires_at=clock.now())
    assert api.refused("admin", "POST", f"{PATH}/{client['id']}/agent-key") == (409, "conflict")
    assert not AgentKey.objects.exists()


@pytest.mark.usefixtures("lapsed")
def test_keys_need_the_entitlement_and_revoking_does_not(api: Api) -> None:
    client = create(api)
    path = f"{PATH}/{client['id']}/agent-key"
    assert api.refused("admin", "POST", path) == (402, "subscription_required")
    assert api.refused("admin", "POST", f"{PATH}/svc_nobody/agent-key") == (402, "subscription_required")
    assert api.refused("member", "POST", path) == (403, "forbidden")
    row = Subscription.objects.create(organization=api.cast.org, status="none", service_clients=True)
    assert api.send("admin", "POST", path).status_code == 201
    Subscription.objects.filter(pk=row.pk).update(status="active", service_clients=False)
    assert api.refused("admin", "POST", path) == (402, "subscription_required")
    assert api.refused("admin", "POST", f"{PATH}/svc_nobody/agent-key")[0] == 402
    assert api.send("admin", "DELETE", path).status_code == 204
    assert api.send("admin", "DELETE", f"{PATH}/{client['id']}").status_code == 204


def test_an_unknown_or_foreign_client(api: Api) -> None:
    foreign = make_service_client(api.cast.other_org)
    for name in ("svc_nobody", "no-id", foreign.id, foreign.client_id):
        assert api.refused("owner", "DELETE", f"{PATH}/{name}") == (404, "not_found")
        assert api.refused("owner", "POST", f"{PATH}/{name}/agent-key") == (404, "not_found")
        assert api.refused("owner", "DELETE", f"{PATH}/{name}/agent-key") == (404, "not_found")
    assert Client.objects.get() == foreign


@pytest.mark.parametrize(("who", "status"), [("member", 403), ("other_owner", 404), ("nobody", 401)])
def test_who_may_not(api: Api, who: str, status: int) -> None:
    client = create(api)
    for method, tail, body in (
        ("GET", "", None),
        ("POST", "", {"name": "K"}),
        ("DELETE", f"/{client['id']}", None),
        ("POST", f"/{client['id']}/agent-key", None),
        ("DELETE", f"/{client['id']}/agent-key", None),
    ):
        assert api.refused(who, method, PATH + tail, body)[0] == status
    assert Client.objects.count() == 1


def test_ten_keys_an_hour(api: Api) -> None:
    client = create(api)
    path = f"{PATH}/{client['id']}/agent-key"
    answers = [api.send("admin", "POST", path) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [201] * 10 + [429]
    assert answers[10]["RateLimit-Policy"] == '"agent-key-mint";q=10;w=3600'
    assert api.send("admin", "DELETE", path).status_code == 204
