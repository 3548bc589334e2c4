"""GET, POST /api/orgs/:orgId/invitations; DELETE …/:id."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from audit.models import AdminAuditEntry
from gateway.lib import clock
from orgs.models import Invitation
from tests.factories.api import Api

PATH = "/orgs/{org}/invitations"


def create(api: Api, **body: Any) -> dict[str, Any]:
    answer = api.send("admin", "POST", PATH, body)
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_link_for_one_person_and_a_week(api: Api) -> None:
    made = create(api)
    assert made["inviteUrl"] == f"{settings.BASE_URL}/invite/{made['token']}"
    assert (made["maxUses"], made["useCount"], made["email"], made["status"]) == (1, 0, None, "pending")
    assert made["createdBy"] == str(api.cast.user("admin").id)
    days = datetime.fromisoformat(made["expiresAt"]) - datetime.fromisoformat(made["createdAt"])
    assert days == timedelta(days=7)
    assert len(made["token"]) == 43
    assert api.get("owner", PATH) == [made]


def test_the_token_is_nowhere_but_in_the_answer(api: Api) -> None:
    made = create(api, email="new@example.com", maxUses=3, expiresInDays=30)
    row = Invitation.objects.get()
    assert made["token"].encode() not in bytes(row.token_sealed) + bytes(row.token_sha256)
    entry = AdminAuditEntry.objects.get(event_type="invitation.created")
    assert made["token"] not in str(entry.__dict__)
    assert entry.metadata["email"] == "new@example.com"


def test_only_pending_ones_are_listed_newest_first(api: Api) -> None:
    first, second = create(api), create(api, maxUses=5)
    expired, used, revoked = create(api), create(api), create(api)
    Invitation.objects.filter(pk=expired["id"]).update(expires_at=clock.now())
    Invitation.objects.filter(pk=used["id"]).update(use_count=1)
    assert api.send("owner", "DELETE", f"{PATH}/{revoked['id']}").status_code == 204
    assert [each["id"] for each in api.get("admin", PATH)] == [second["id"], first["id"]]
    assert api.get("other_owner", "/orgs/{other}/invitations") == []


def test_a_key_that_is_gone_hides_the_token_only(api: Api) -> None:
    made = create(api)
    Invitation.objects.update(token_key_id="retired")
    found = api.get("admin", PATH)
    assert [(each["id"], each["token"], each["inviteUrl"]) for each in found] == [(made["id"], None, None)]


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"maxUses": 0}, "maxUses"),
        ({"maxUses": 101}, "maxUses"),
        ({"maxUses": "5"}, "maxUses"),
        ({"maxUses": True}, "maxUses"),
        ({"maxUses": 1.0}, "maxUses"),
        ({"expiresInDays": 0}, "expiresInDays"),
        ({"expiresInDays": 31}, "expiresInDays"),
        ({"email": "nobody"}, "email"),
        ({"email": "a@example.com\r\nBcc: b@example.com"}, "email"),
        ({"email": 7}, "email"),
    ],
)
def test_a_bad_member_makes_no_link(api: Api, body: dict[str, Any], member: str) -> None:
    assert api.faults("admin", "POST", PATH, body) == {member}
    assert not Invitation.objects.exists()


@pytest.mark.parametrize("who", ["member", "other_owner", "nobody"])
def test_others_neither_make_nor_see_nor_revoke_links(api: Api, who: str) -> None:
    made = create(api)
    expected = {"member": 403, "other_owner": 404, "nobody": 401}[who]
    assert api.refused(who, "POST", PATH, {})[0] == expected
    assert api.refused(who, "GET", PATH)[0] == expected
    assert api.refused(who, "DELETE", f"{PATH}/{made['id']}")[0] == expected
    assert api.refused("other_owner", "DELETE", f"/orgs/{{other}}/invitations/{made['id']}") == (404, "not_found")
    assert Invitation.objects.get().revoked_at is None


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_is_reported_before_field_errors_and_still_revokes(api: Api, settings: Any) -> None:
    assert api.refused("admin", "POST", PATH, {"maxUses": -1}) == (402, "subscription_required")
    assert api.refused("member", "POST", PATH, {}) == (403, "forbidden")
    settings.BILLING_MODE = "disabled"
    made = create(api)
    settings.BILLING_MODE = "manual"
    assert api.send("admin", "DELETE", f"{PATH}/{made['id']}").status_code == 204
    assert api.refused("admin", "DELETE", f"{PATH}/{made['id']}") == (404, "not_found")
    assert api.events() == ["invitation.created", "invitation.revoked"]


def test_ten_an_hour_and_not_one_more(api: Api) -> None:
    answers = [api.send("admin", "POST", PATH) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [201] * 10 + [429]
    assert answers[0]["RateLimit"] == '"invitation-create";r=9;t=3600'
    assert answers[0]["RateLimit-Policy"] == '"invitation-create";q=10;w=3600'
    assert answers[9]["X-RateLimit-Remaining"] == "0"
    refused = answers[10]
    assert 3500 < int(refused["Retry-After"]) <= 3600
    assert refused.json()["retryAfter"] == int(refused["Retry-After"])
    assert refused.json()["error"] == "rate_limited"
    assert api.send("owner", "POST", PATH).status_code == 201
    assert Invitation.objects.count() == 11
