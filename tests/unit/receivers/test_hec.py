"""The receivers of Splunk and LogScale take what the documentation shows, and find what it does not allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.receivers import Fault, Receiver
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end
SPLUNK_TOKEN, CHANNEL = "B5A79AAD-D822-46CC-80D1-819F80D7BFB0", "FE0ECFAD-13D5-401B-847D-77833BD77131"
SAMPLE = (
    b'{"time": 1426279439, "host": "localhost", "source": "random-data-generator", "sourcetype": "my_sample_data",'
    b' "index": "main", "event": "Hello world!"}'
)


@pytest.fixture
def splunk() -> Iterator[Receiver]:
    with Receiver("splunk", token=SPLUNK_TOKEN, indexes=("main", "other")) as started:
        yield started


@pytest.fixture
def logscale() -> Iterator[Receiver]:
    with Receiver("logscale", token="ingest") as started:
        yield started


def collect(receiver: Receiver, body: bytes, path: str = "/services/collector/event", **headers: str) -> Answer:
    return send(receiver, path, body, {"Authorization": f"Splunk {SPLUNK_TOKEN}", **headers})


def envelope(event: Any = "x", **more: Any) -> bytes:
    return as_json({"time": 1426279439.123, "event": event, **more})


def test_events_one_after_the_other(splunk: Receiver) -> None:
    answer = collect(splunk, SAMPLE + envelope({"id": 1}) + b"\r\n" + envelope({"id": 2}, fields={"a": ["b", "c"]}))
    assert (answer.status, answer.json()) == (200, {"text": "Success", "code": 0})
    assert splunk.ids("event", "id") == [1, 2]
    assert splunk.events[0]["event"] == "Hello world!"
    assert splunk.violations == []


@pytest.mark.parametrize(
    ("authorization", "status", "code", "breaches"),
    [
        ("Splunk other", 403, {"text": "Invalid token", "code": 4}, []),
        (
            "Bearer x",
            401,
            {"text": "Invalid authorization", "code": 3},
            ["Authorization is not of the form Splunk TOKEN"],
        ),
        (None, 401, {"text": "Token is required", "code": 2}, ["no Authorization"]),
    ],
)
def test_tokens(
    splunk: Receiver, authorization: str | None, status: int, code: dict[str, Any], breaches: list[str]
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    answer = send(splunk, "/services/collector", SAMPLE, headers)
    assert (answer.status, answer.json()) == (status, code)
    assert splunk.violations == breaches
    assert splunk.events == []


def test_a_disabled_token() -> None:
    with Receiver("splunk", token=SPLUNK_TOKEN, disabled=True) as receiver:
        answer = collect(receiver, SAMPLE)
    assert (answer.status, answer.json()) == (403, {"text": "Token disabled", "code": 1})


def test_a_channel_is_asked_for_where_events_are_acknowledged() -> None:
    with Receiver("splunk", token=SPLUNK_TOKEN, acknowledges=True) as receiver:
        assert collect(receiver, SAMPLE).json() == {"text": "Data channel is missing", "code": 10}
        assert receiver.violations == []
        assert collect(receiver, SAMPLE, **{"X-Splunk-Request-Channel": "1"}).json()["code"] == 11
        answers = [collect(receiver, SAMPLE, **{"X-Splunk-Request-Channel": CHANNEL}).json() for _ in range(2)]
        assert answers == [{"text": "Success", "code": 0, "ackId": 0}, {"text": "Success", "code": 0, "ackId": 1}]
        assert receiver.violations == ["the channel 1 is no GUID"]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b" \n", {"text": "No data", "code": 5}),
        (SAMPLE + b"{", {"text": "Invalid data format", "code": 6, "invalid-event-number": 1}),
        (b"[" + SAMPLE + b"]", {"text": "Invalid data format", "code": 6, "invalid-event-number": 0}),
        (SAMPLE + b"," + SAMPLE, {"text": "Invalid data format", "code": 6, "invalid-event-number": 1}),
        (b'{"event": NaN}', {"text": "Invalid data format", "code": 6, "invalid-event-number": 0}),
        (b'{"event": "\\ud800"}', {"text": "Invalid data format", "code": 6, "invalid-event-number": 0}),
        (b'{"time": 1}', {"text": "Event field is required", "code": 12, "invalid-event-number": 0}),
        (envelope(""), {"text": "Event field cannot be blank", "code": 13, "invalid-event-number": 0}),
        (
            SAMPLE + envelope(fields={"a": {"b": 1}}),
            {"text": "Error in handling indexed fields", "code": 15, "invalid-event-number": 1},
        ),
    ],
)
def test_malformed_events(splunk: Receiver, body: bytes, answer: dict[str, Any]) -> None:
    found = collect(splunk, body)
    assert (found.status, found.json()) == (400, answer)
    assert len(splunk.violations) == 1
    assert splunk.events == []


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (envelope(level="info"), "event 0: the envelope has no key level"),
        (envelope(timezone="Z"), "event 0: the envelope has no key timezone"),
        (envelope(time=1426279439123), "event 0: the time 1426279439123 is not in seconds since 1970"),
        (
            envelope(time="2015-03-13T20:43:59Z"),
            "event 0: the time '2015-03-13T20:43:59Z' is not in seconds since 1970",
        ),
        (envelope(host=1), "event 0: host is no text"),
    ],
)
def test_what_splunk_would_drop_in_silence(splunk: Receiver, body: bytes, sentence: str) -> None:
    assert collect(splunk, body).status == 200
    assert splunk.violations == [sentence]


def test_an_index_that_the_token_may_not_write_to(splunk: Receiver) -> None:
    answer = collect(splunk, envelope(index="main") + envelope(index="secret"))
    assert (answer.status, answer.json()) == (400, {"text": "Incorrect index", "code": 7, "invalid-event-number": 2})
    assert splunk.violations == []
    assert len(splunk.events) == 1


def test_a_partial_failure_names_the_first_bad_event(splunk: Receiver) -> None:
    splunk.fail_next(Fault.refuses(1))
    answer = collect(splunk, envelope("a") + envelope("b") + envelope("c"))
    assert answer.json() == {"text": "Invalid data format", "code": 6, "invalid-event-number": 1}
    assert splunk.ids("event") == ["a"]


def test_busy_in_splunks_words(splunk: Receiver) -> None:
    splunk.fail_next(Fault.answers(503, retry_after=2))
    answer = collect(splunk, SAMPLE)
    assert (answer.status, answer.json()) == (503, {"text": "Server is busy", "code": 9})
    assert answer.headers["Retry-After"] == "2"


def test_logscale_takes_a_bearer_token_and_a_time_zone(logscale: Receiver) -> None:
    headers = {"Authorization": "Bearer ingest", "Content-Type": "application/json"}
    answer = send(logscale, "/api/v1/ingest/hec", envelope({"id": 1}, timezone="Z", fields={"a": "b"}), headers)
    assert (answer.status, logscale.ids("event", "id"), logscale.violations) == (200, [1], [])
    assert send(logscale, "/api/v1/ingest/hec", SAMPLE, {"Authorization": "Bearer other"}).status == 401
    assert logscale.violations == []
    assert send(logscale, "/api/v1/ingest/hec", SAMPLE, {"Authorization": "Splunk ingest"}).status == 401
    assert send(logscale, "/api/v1/ingest", SAMPLE, headers).status == 404
    assert logscale.violations == ["no Authorization: Bearer TOKEN", "/api/v1/ingest"]


def test_logscale_refuses_a_batch_whole(logscale: Receiver) -> None:
    logscale.poison = lambda event: event["event"] == "bad"
    headers = {"Authorization": "Bearer ingest"}
    assert send(logscale, "/api/v1/ingest/hec", envelope("good") + envelope("bad"), headers).status == 400
    assert send(logscale, "/api/v1/ingest/hec", envelope("good"), headers).status == 200
    assert logscale.ids("event") == ["good"]
