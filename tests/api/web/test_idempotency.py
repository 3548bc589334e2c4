"""Idempotency-Key: a repeated request creates nothing again. Spec: D29"""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client as Browser

from gateway.lib import clock
from gateway.lib.crypto import Keyring
from gateway.tasks import remove_idempotency_records
from gateway.web import idempotency
from gateway.web.models import IdempotencyRecord
from oauth_ext.models import AgentKey, Client
from orgs.models import Invitation, Membership, Organization, Team
from orgs.services import teams
from tests.factories.api import Api
from tests.factories.credentials import make_service_client
from tests.factories.races import at_once

TEAMS = "/orgs/{org}/teams"
KEYED = {"Idempotency-Key": "first-try"}


def post(api: Api, who: str, path: str, body: object = None, *, key: str = "first-try") -> HttpResponse:
    return api.send(who, "POST", path, body, headers={"Idempotency-Key": key})


def outcome(answer: HttpResponse) -> tuple[int, str]:
    return answer.status_code, json.loads(answer.content)["error"]


@pytest.mark.parametrize(
    ("path", "body", "model"),
    [
        ("/orgs", {"name": "Initech"}, Organization),
        (TEAMS, {"name": "Ops"}, Team),
        ("/orgs/{org}/invitations", {"maxUses": 3}, Invitation),
    ],
)
def test_the_same_again_is_answered_and_not_done(api: Api, path: str, body: dict[str, Any], model: Any) -> None:
    had = model.objects.count()
    first, again = post(api, "admin", path, body), post(api, "admin", path, body)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert ("Idempotent-Replayed" in first, again["Idempotent-Replayed"]) == (False, "true")
    assert model.objects.count() == had + 1
    assert post(api, "admin", path, {**body, "name": "Other"}, key="second").status_code == 201
    assert api.send("admin", "POST", path, {**body, "name": "Third"}).status_code == 201
    assert model.objects.count() == had + 3


def test_another_body_is_refused(api: Api) -> None:
    post(api, "admin", TEAMS, {"name": "Ops"})
    assert outcome(post(api, "admin", TEAMS, {"name": "Dev"})) == (422, "idempotency_key_reused")
    assert [team.name for team in Team.objects.all()] == ["Ops"]


def test_a_key_is_the_persons_and_the_routes_own(api: Api) -> None:
    assert post(api, "admin", TEAMS, {"name": "Ops"}).status_code == 201
    assert outcome(post(api, "owner", TEAMS, {"name": "Ops"})) == (409, "team_name_taken")
    assert post(api, "other_owner", "/orgs/{other}/teams", {"name": "Ops"}).status_code == 201
    assert post(api, "admin", "/orgs", {"name": "Ops"}).status_code == 201
    assert Team.objects.count() == 2


def test_a_refusal_is_not_kept(api: Api) -> None:
    assert outcome(post(api, "admin", TEAMS, {"name": ""})) == (400, "invalid")
    taken = Team.objects.create(organization=api.cast.org, name="Ops")
    assert outcome(post(api, "admin", TEAMS, {"name": "Ops"})) == (409, "team_name_taken")
    taken.delete()
    assert post(api, "admin", TEAMS, {"name": "Ops"}).status_code == 201


def test_an_unfinished_first_request_is_not_done_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(**asked: object) -> Team:
        raise RuntimeError("after it was done, perhaps")

    with monkeypatch.context() as patch:
        patch.setattr(teams, "create_team", break_down)
        browser = api.cast.client("admin")
        browser.raise_request_exception = False
        body = json.dumps({"name": "Ops"})
        broken = browser.post(api.url(TEAMS), body, content_type="application/json", headers=KEYED)
        assert broken.status_code == 500
    assert outcome(post(api, "admin", TEAMS, {"name": "Ops"})) == (409, "idempotency_unfinished")
    assert not Team.objects.exists()


def test_secrets_are_not_kept_for_it(api: Api) -> None:
    path = "/orgs/{org}/service-clients"
    made = json.loads(post(api, "admin", path, {"name": "Robot"}).content)
    assert outcome(post(api, "admin", path, {"name": "Robot"})) == (409, "idempotency_answer_not_kept")
    assert Client.objects.count() == 1
    key_path = f"{path}/{make_service_client(api.cast.org).client_id}/agent-key"
    assert post(api, "admin", key_path).status_code == 201
    kept = AgentKey.objects.get().prefix
    assert outcome(post(api, "admin", key_path)) == (409, "idempotency_answer_not_kept")
    assert AgentKey.objects.get().prefix == kept
    for row in IdempotencyRecord.objects.all():
        assert bytes(row.sealed) == b""
        assert made["client_secret"] not in str(row.__dict__)


def test_what_is_kept_is_sealed_and_bound_to_its_row(api: Api, settings: LazySettings) -> None:
    made = json.loads(post(api, "admin", "/orgs/{org}/invitations").content)
    row = IdempotencyRecord.objects.get()
    assert made["token"].encode() not in bytes(row.sealed)
    post(api, "owner", "/orgs/{org}/invitations")
    theirs = IdempotencyRecord.objects.get(user=api.cast.user("owner"))
    IdempotencyRecord.objects.filter(pk=row.pk).update(sealed=bytes(theirs.sealed))
    refusal = (409, "idempotency_answer_not_kept")
    assert outcome(post(api, "admin", "/orgs/{org}/invitations")) == refusal
    settings.CREDENTIAL_KEYRING = Keyring("new", {"new": bytes(range(2, 34))})
    assert outcome(post(api, "owner", "/orgs/{org}/invitations")) == refusal
    assert Invitation.objects.count() == 2


def test_authority_is_looked_at_before_an_answer_is_given_again(api: Api, settings: LazySettings) -> None:
    post(api, "admin", TEAMS, {"name": "Ops"})
    settings.BILLING_MODE = "manual"
    assert outcome(post(api, "admin", TEAMS, {"name": "Ops"})) == (402, "subscription_required")
    settings.BILLING_MODE = "disabled"
    Membership.objects.filter(user=api.cast.user("admin")).update(role="member")
    assert outcome(post(api, "admin", TEAMS, {"name": "Ops"})) == (403, "forbidden")
    Membership.objects.filter(user=api.cast.user("admin")).delete()
    assert outcome(post(api, "admin", TEAMS, {"name": "Ops"})) == (404, "not_found")


def test_a_day_later_the_key_is_free(api: Api) -> None:
    post(api, "admin", "/orgs", {"name": "Initech"})
    IdempotencyRecord.objects.update(created_at=clock.now() - timedelta(hours=23, minutes=59))
    assert "Idempotent-Replayed" in post(api, "admin", "/orgs", {"name": "Initech"})
    IdempotencyRecord.objects.update(created_at=clock.now() - idempotency.KEPT)
    assert "Idempotent-Replayed" not in post(api, "admin", "/orgs", {"name": "Initech"})
    assert Organization.objects.filter(name="Initech").count() == 2
    assert IdempotencyRecord.objects.count() == 1


def test_the_worker_removes_what_nobody_may_ask_for_again(api: Api) -> None:
    post(api, "admin", "/orgs", {"name": "Initech"})
    remove_idempotency_records()
    assert IdempotencyRecord.objects.count() == 1
    IdempotencyRecord.objects.update(created_at=clock.now() - idempotency.KEPT)
    remove_idempotency_records()
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ü", "a\tb"])
def test_a_key_that_is_none(api: Api, key: str) -> None:
    assert outcome(post(api, "admin", TEAMS, {"name": "Ops"}, key=key)) == (400, "invalid_idempotency_key")
    assert not Team.objects.exists()


def test_elsewhere_the_header_means_nothing(api: Api) -> None:
    for _ in range(2):
        assert outcome(post(api, "owner", "/orgs/{org}/redeem-code", {"code": "x"})) == (422, "invalid_code")
        assert api.send("owner", "GET", TEAMS, headers=KEYED).status_code == 200
    assert not IdempotencyRecord.objects.exists()


def test_of_many_at_once_one_is_done(committed_api: Api) -> None:
    def create(browser: Browser) -> HttpResponse:
        body = json.dumps({"name": "Initech"})
        return browser.post("/api/orgs", body, content_type="application/json", headers=KEYED)  # type: ignore[return-value]

    answers = at_once(*[partial(create, committed_api.cast.client("admin")) for _ in range(12)])
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert {json.loads(answer.content)["error"] for answer in answers if answer.status_code == 409} <= {
        "idempotency_unfinished"
    }
    assert Organization.objects.filter(name="Initech").count() == 1


def test_a_stolen_table_cannot_be_tried_against_guessed_bodies(api: Api, settings: LazySettings) -> None:
    body = {"name": "guessable"}
    assert post(api, "admin", TEAMS, body).status_code == 201
    assert post(api, "admin", TEAMS, body).status_code == 201
    kept = bytes(IdempotencyRecord.objects.get().body_sha256)
    assert kept != hashlib.sha256(json.dumps(body).encode()).digest()
    settings.SECRET_KEY = "another key, which is not in the database either"
    assert outcome(post(api, "admin", TEAMS, body)) == (422, "idempotency_key_reused")
    assert Team.objects.count() == 1
