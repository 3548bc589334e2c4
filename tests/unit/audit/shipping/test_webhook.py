from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import pytest

from audit.shipping.platforms.exchange import (
    BatchRefused,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    RetryLater,
    Verdict,
)
from audit.shipping.platforms.webhook import Webhook
from tests.unit.audit.shipping.samples import BATCH, CALL, CHANGE, NOW, answer, target

PLATFORM = Webhook()
URL = "https://hooks.example.com/in?team=1"
KEY = bytes(range(32))
STANDARD = "whsec_" + base64.b64encode(KEY).decode()


def signature(key: bytes, headers: dict[str, str], body: bytes) -> str:
    """As a receiver computes it."""
    signed = b".".join((headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def test_the_request_without_a_secret() -> None:
    sent = PLATFORM.request(target(URL), BATCH, now=NOW, token="")
    assert sent.url == URL
    assert dict(sent.headers) == {
        "Content-Type": "application/json",
        "webhook-id": "batch_" + hashlib.sha256(f"{CALL.id}\n{CHANGE.id}".encode()).hexdigest()[:32],
        "webhook-timestamp": "1795435200",
    }
    assert json.loads(sent.body) == {
        "events": [
            {"id": CALL.id, "type": "tool_call", "timestamp": "2026-11-23T10:15:30.123Z", "data": CALL.fields},
            {"id": CHANGE.id, "type": "admin_change", "timestamp": "2026-11-23T10:15:31.000Z", "data": CHANGE.fields},
        ]
    }
    assert sent.body.startswith(b'{"events":[{"id":"019a0000-0000-7000-8000-000000000001","type":"tool_call",')


def test_the_signed_bytes_are_the_sent_bytes() -> None:
    sent = PLATFORM.request(target(URL, secret="a text"), BATCH, now=NOW, token="")
    assert sent.headers["webhook-signature"] == signature(b"a text", dict(sent.headers), sent.body)
    assert not sent.may_compress


@pytest.mark.parametrize("secret", [STANDARD, STANDARD.rstrip("=")])
def test_the_standard_form_of_a_secret_is_decoded(secret: str) -> None:
    sent = PLATFORM.request(target(URL, secret=secret), BATCH, now=NOW, token="")
    assert sent.headers["webhook-signature"] == signature(KEY, dict(sent.headers), sent.body)


def test_while_a_secret_changes_both_sign_the_new_one_first() -> None:
    sent = PLATFORM.request(target(URL, secret=STANDARD, previousSecret="old"), BATCH, now=NOW, token="")
    given = sent.headers["webhook-signature"].split(" ")
    assert given == [signature(key, dict(sent.headers), sent.body) for key in (KEY, b"old")]


def test_a_batch_keeps_its_id_and_each_attempt_has_its_own_time() -> None:
    def sent(events: list, later_s: int = 0) -> dict[str, str]:
        moment = NOW + timedelta(seconds=later_s)
        return dict(PLATFORM.request(target(URL, secret="s"), events, now=moment, token="").headers)

    first, again = sent(BATCH), sent(BATCH, later_s=90)
    assert first["webhook-id"] == again["webhook-id"]
    assert int(again["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 90
    assert first["webhook-signature"] != again["webhook-signature"]
    assert len({sent(events)["webhook-id"] for events in ([CALL], [CHANGE], BATCH, BATCH[::-1])}) == 4
    assert "." not in first["webhook-id"], "the id cannot shift the parts of the signed text"


@pytest.mark.parametrize("config", [{}, {"secret": ""}, {"secret": "x"}, {"secret": STANDARD, "previousSecret": "ö"}])
def test_accepted_secrets(config: dict[str, str]) -> None:
    PLATFORM.check(URL, config)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"secret": "whsec_"}, "secret"),
        ({"secret": "whsec_****"}, "secret"),
        ({"secret": "whsec_" + "A" * 30}, "secret"),
        ({"secret": "whsec_" + "A" * 33}, "secret"),
        ({"secret": "whsec_" + "A" * 88}, "secret"),
        ({"secret": STANDARD + "\n"}, "secret"),
        ({"secret": "whsec_é" + "A" * 43}, "secret"),
        ({"secret": "x", "previousSecret": "whsec_AAAA"}, "previousSecret"),
        ({"previousSecret": "x"}, "secret"),
    ],
)
def test_refused_secrets(config: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidDestination) as refusal:
        PLATFORM.check(URL, config)
    assert (refusal.value.code, set(refusal.value.fields)) == ("config_missing", {field})
    assert not any(secret in str(refusal.value.fields) for secret in config.values() if len(secret) > 6)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Delivered()),
        (204, Delivered()),
        (400, RetryLater("400: no", 7.0)),
        (401, DestinationRefused("401: no")),
        (404, DestinationRefused("404: no")),
        (410, DestinationRefused("410: no")),
        (413, BatchRefused("413: no")),
        (422, BatchRefused("422: no")),
        (429, RetryLater("429: no", 7.0)),
        (500, RetryLater("500: no", 7.0)),
        (302, DestinationRefused("302: the address redirects, which is not followed")),
    ],
)
def test_answers(status: int, verdict: Verdict) -> None:
    assert PLATFORM.read(answer(status, "no", {"Retry-After": "7"}), BATCH) == verdict


def test_no_secret_is_in_a_repr() -> None:
    place = target(URL, secret="secret-one-1", previousSecret="secret-two-2")
    shown = repr((place, PLATFORM.request(place, BATCH, now=NOW, token="")))
    assert "secret-one-1" not in shown
    assert "secret-two-2" not in shown
    assert "v1," not in shown
