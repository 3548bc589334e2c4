from __future__ import annotations

import json

import pytest

from audit.shipping.platforms.better_stack import BetterStack
from audit.shipping.platforms.exchange import (
    BatchRefused,
    Delivered,
    DestinationRefused,
    InvalidDestination,
    RetryLater,
    Verdict,
)
from tests.unit.audit.shipping.samples import BATCH, CALL, CHANGE, NOW, answer, target

PLATFORM = BetterStack()
PRESET = PLATFORM.preset_url


def test_the_request() -> None:
    sent = PLATFORM.request(target(PRESET, token="source-token-1"), BATCH, now=NOW, token="")
    assert sent.url == "https://in.logs.betterstack.com/"
    assert sent.headers == {"Content-Type": "application/json", "Authorization": "Bearer source-token-1"}
    assert sent.may_compress
    call, change = json.loads(sent.body)
    assert call == {
        "dt": "2026-11-23T10:15:30.123Z",
        "level": "error",
        "message": "Ana Ek called list_devices of acme: error vendor_timeout",
        "eventId": CALL.id,
        "type": "tool_call",
        **CALL.fields,
    }
    assert change == {
        "dt": "2026-11-23T10:15:31.000Z",
        "level": "info",
        "message": "member.role_changed by Ana Ek: Bo Li",
        "eventId": CHANGE.id,
        "type": "admin_change",
        **CHANGE.fields,
    }


def test_the_bytes_of_a_record_and_a_repeated_batch() -> None:
    first = PLATFORM.request(target(PRESET, token="t"), [CHANGE], now=NOW, token="")
    assert first.body.startswith(b'[{"dt":"2026-11-23T10:15:31.000Z","level":"info","message":"member.role_changed by')
    assert PLATFORM.request(target(PRESET, token="t"), [CHANGE], now=NOW, token="").body == first.body


@pytest.mark.parametrize(
    "url", [PRESET, f"{PRESET}/", f"{PRESET}:443", "https://IN.logs.BetterStack.com/", f"{PRESET}/?x=1"]
)
def test_the_preset_host_is_accepted(url: str) -> None:
    PLATFORM.check(url, {"token": "t"})


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://betterstack.com",
        "https://s1.eu-nbg-2.betterstackdata.com",
        "https://evil.in.logs.betterstack.com",
        "https://in.logs.betterstack.com.evil.example",
        "https://in.logs.betterstack.com.",
        "https://in.logs.betterstack.com@evil.example",
        "https://evil.example@in.logs.betterstack.com",
        "https://evil.example\\@in.logs.betterstack.com",
        "https://in.logs.betterstack.com:8443",
        "https://in.logs.betterstac\u212a.com",
        "https://in%2elogs.betterstack.com",
        "https:///in.logs.betterstack.com",
    ],
)
def test_any_other_host_is_refused(url: str) -> None:
    with pytest.raises(InvalidDestination) as refusal:
        PLATFORM.check(url, {"token": "t"})
    assert refusal.value.code == "endpoint_not_allowed"
    assert refusal.value.fields == {"endpointUrl": "Logs go to https://in.logs.betterstack.com only."}


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (202, "", Delivered()),
        (402, "Quota exceeded", RetryLater("402: Quota exceeded", 30.0)),
        (403, "Unauthorized", DestinationRefused("403: Unauthorized")),
        (406, "Couldn't parse JSON content.", BatchRefused("406: Couldn't parse JSON content.")),
        (413, "payload reached size limit", BatchRefused("413: payload reached size limit")),
        (429, "slow down", RetryLater("429: slow down", 30.0)),
        (503, "", RetryLater("503, without a text", 30.0)),
        (301, "", DestinationRefused("301: the address redirects, which is not followed")),
    ],
)
def test_answers(status: int, body: str, verdict: Verdict) -> None:
    assert PLATFORM.read(answer(status, body, {"Retry-After": "30"}), BATCH) == verdict


def test_the_token_is_in_no_repr() -> None:
    place = target(PRESET, token="source-token-1")
    assert "source-token-1" not in repr((place, PLATFORM.request(place, BATCH, now=NOW, token="")))
