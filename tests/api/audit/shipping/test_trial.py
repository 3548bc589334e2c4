"""POST /api/orgs/:orgId/log-shipping/:destinationId/test and …/replay."""

from __future__ import annotations

from typing import Any

import pytest

from audit.models import DeliveryHour, LogDestination, SentHour
from audit.shipping import trial
from gateway.lib.guarded_client import OutboundTimeout, Response
from gateway.lib.outbound import AddressRefused
from tests.api.audit.shipping.stage import PlayedPlatform
from tests.api.audit.shipping.test_destinations_api import PATH, body_of, create
from tests.factories.api import Api

SECRET = "a-signing-secret-that-nobody-may-read"


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> PlayedPlatform:
    played = PlayedPlatform()
    monkeypatch.setitem(trial.send_test.__kwdefaults__, "request", played)
    return played


@pytest.fixture
def one(api: Api) -> str:
    """The path of a destination."""
    return f"{PATH}/{create(api, body_of(secret=SECRET))['id']}"


def state_of(row: LogDestination) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_one_marked_record_is_sent_and_no_place_moves(api: Api, one: str, platform: PlayedPlatform) -> None:
    platform.replies = [Response(200, {}, b'{"text":"Success"}')]
    before = state_of(LogDestination.objects.get())
    answer = api.send("admin", "POST", f"{one}/test")
    assert (answer.status_code, answer.json()) == (200, {"accepted": True, "answer": '200: {"text":"Success"}'})
    ((event,),) = platform.batches
    admin, row = api.cast.user("admin"), LogDestination.objects.get()
    assert event == {
        "id": event["id"],
        "orgId": str(api.cast.org.id),
        "eventType": "log_shipping.test",
        "actorId": str(admin.id),
        "actorLabel": "Admin",
        "targetId": str(row.pk),
        "targetLabel": "SIEM",
        "metadata": {"note": "A test of log shipping. Nothing was changed."},
    }
    api.send("admin", "POST", f"{one}/test")
    assert platform.batches[1][0]["id"] != event["id"], "the platform must not take the second for the first"
    assert state_of(LogDestination.objects.get()) == before
    assert api.events() == ["log_shipping.created"]
    assert not DeliveryHour.objects.exists()
    assert SentHour.objects.get().org_id == api.cast.org.id, "its bytes count"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Response(401, {}, b"bad signature"), "401: bad signature"),
        (Response(503, {}, b""), "503, without a text"),
        (Response(422, {}, b"no such field"), "422: no such field"),
        (
            Response(302, {"Location": "https://elsewhere.example"}, b""),
            "302: the address redirects, which is not followed",
        ),
        (Response(400, {}, b"x" * 5_000), "400: " + "x" * 200),
        (Response(400, {}, b"two\nlines\x1b[31m"), "400: two\ufffdlines\ufffd[31m"),
        (Response(403, {}, f"no {SECRET} here".encode()), "403: no [hidden] here"),
        (OutboundTimeout("ReadTimeout"), "There was no answer within 10 s."),
        (AddressRefused(), "The address points to a network that is not allowed."),
    ],
)
def test_a_refusal_is_told_in_the_platforms_words(
    api: Api, one: str, platform: PlayedPlatform, reply: Response | Exception, words: str
) -> None:
    platform.replies = [reply]
    answer = api.send("admin", "POST", f"{one}/test")
    assert (answer.status_code, answer.json()) == (200, {"accepted": False, "answer": words})
    assert LogDestination.objects.get().last_error == ""


def test_a_refusal_of_the_record_alone_is_a_refusal(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTLP answers 200 and says beside it how many records it did not take."""
    body = {"label": "Collector", "platform": "otlp", "endpointUrl": "https://otlp.example.com", "config": {}}
    one = f"{PATH}/{create(api, body)['id']}"
    rejected = b'{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}'
    answer = Response(200, {"Content-Type": "application/json"}, rejected)
    monkeypatch.setitem(trial.send_test.__kwdefaults__, "request", lambda *args, **options: answer)
    assert api.send("admin", "POST", f"{one}/test").json() == {"accepted": False, "answer": "too old"}


def test_a_paused_destination_can_be_tested(api: Api, one: str, platform: PlayedPlatform) -> None:
    api.send("admin", "PATCH", one, {"enabled": False})
    assert api.send("admin", "POST", f"{one}/test").json()["accepted"] is True


def test_a_configuration_that_does_not_open_sends_nothing(api: Api, one: str, platform: PlayedPlatform) -> None:
    LogDestination.objects.update(config_key_id="lost")
    assert api.send("admin", "POST", f"{one}/test").json() == {
        "accepted": False,
        "answer": "The stored configuration can’t be decrypted. Enter it again.",
    }
    assert not platform.batches


def test_two_at_once_for_an_organization(api: Api, one: str, platform: PlayedPlatform) -> None:
    theirs = create(api, who="other_owner", path="/orgs/{other}/log-shipping")["id"]
    for _ in range(2):
        trial.slots.take(api.cast.org.id)
    try:
        refused = api.send("admin", "POST", f"{one}/test")
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
        assert refused["Retry-After"] == "5"
        assert not platform.batches
        assert api.send("other_owner", "POST", f"/orgs/{{other}}/log-shipping/{theirs}/test").status_code == 200
    finally:
        for _ in range(2):
            trial.slots.give_back(api.cast.org.id)
    assert api.send("admin", "POST", f"{one}/test").status_code == 200
    assert not trial.slots.taken


def test_tests_are_counted_for_the_organization(api: Api, one: str, platform: PlayedPlatform, shared: object) -> None:
    for _ in range(60):
        assert api.send("admin", "POST", f"{one}/test").status_code == 200
    assert api.refused("owner", "POST", f"{one}/test") == (429, "rate_limited")
    assert len(platform.batches) == 60


def test_replaying_names_the_time(api: Api, one: str) -> None:
    answer = api.send("admin", "POST", f"{one}/replay", {"since": "2026-01-31"})
    assert answer.status_code == 200
    assert f"{PATH}/{answer.json()['id']}" == one
    assert api.events() == ["log_shipping.created", "log_shipping.replayed"]


@pytest.mark.parametrize("since", [None, "", "yesterday", 7, "2026-02-30", "2999-01-01", "x" * 41])
def test_a_wrong_time_replays_nothing(api: Api, one: str, since: object) -> None:
    assert api.faults("admin", "POST", f"{one}/replay", {"since": since}) == {"since"}
    assert api.events() == ["log_shipping.created"]
