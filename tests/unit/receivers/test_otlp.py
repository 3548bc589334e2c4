"""The receiver of OTLP takes the example of its repository, and finds what the JSON mapping does not allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.receivers import Fault, Receiver
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end


def attribute(key: str, **value: Any) -> dict[str, Any]:
    return {"key": key, "value": value}


# github.com/open-telemetry/opentelemetry-proto examples/logs.json
ATTRIBUTES = [
    attribute("string.attribute", stringValue="some string"),
    attribute("boolean.attribute", boolValue=True),
    attribute("int.attribute", intValue="10"),
    attribute("double.attribute", doubleValue=637.704),
    attribute("array.attribute", arrayValue={"values": [{"stringValue": "many"}, {"stringValue": "values"}]}),
    attribute("map.attribute", kvlistValue={"values": [attribute("some.map.key", stringValue="some value")]}),
]
RECORD = {
    "timeUnixNano": "1544712660300000000",
    "observedTimeUnixNano": "1544712660300000000",
    "severityNumber": 10,
    "severityText": "Information",
    "traceId": "5B8EFFF798038103D269B633813FC60C",
    "spanId": "EEE19B7EC3C1B174",
    "body": {"stringValue": "Example log record"},
    "attributes": ATTRIBUTES,
}


def request(*records: Any, resource: Any = None, **more: Any) -> Any:
    scope = {"name": "my.library", "version": "1.0.0", "attributes": [attribute("my.scope", stringValue="x")]}
    resource = resource or {"attributes": [attribute("service.name", stringValue="my.service")]}
    return {
        "resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": list(records)}]}],
        **more,
    }


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver("otlp") as started:
        yield started


def export(receiver: Receiver, body: Any, path: str = "/v1/logs", **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else as_json(body)
    return send(receiver, path, raw, {"Content-Type": "application/json", **headers})


def test_the_documented_example(receiver: Receiver) -> None:
    answer = export(receiver, request(RECORD))
    assert (answer.status, answer.json(), answer.headers["Content-Type"]) == (200, {}, "application/json")
    assert receiver.violations == []
    (event,) = receiver.events
    assert (event["body"], event["scope"], event["resource"]) == (
        "Example log record",
        "my.library",
        {"service.name": "my.service"},
    )
    assert event["attributes"] == {
        "string.attribute": "some string",
        "boolean.attribute": True,
        "int.attribute": 10,
        "double.attribute": 637.704,
        "array.attribute": ["many", "values"],
        "map.attribute": {"some.map.key": "some value"},
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"timeUnixNano": 1544712660300000000}, "logRecords[0].timeUnixNano: no text of 64 bits"),
        ({"timeUnixNano": "-1"}, "timeUnixNano: no text of 64 bits"),
        ({"timeUnixNano": str(2**64)}, "timeUnixNano: no text of 64 bits"),
        ({"time_unix_nano": "1"}, "no field time_unix_nano"),
        ({"severityNumber": "SEVERITY_NUMBER_INFO"}, "severityNumber: no number of a severity"),
        ({"severityNumber": 0}, "severityNumber: no number of a severity"),
        ({"severityNumber": 25}, "severityNumber: no number of a severity"),
        ({"traceId": "W47/95gDgQPSabYzgT/GDA=="}, "traceId: no hex of 16 bytes"),
        ({"traceId": "0" * 32}, "traceId: no hex of 16 bytes"),
        ({"spanId": "EEE19B7EC3C1B17"}, "spanId: no hex of 8 bytes"),
        ({"flags": "1"}, "flags: no number of 32 bits"),
        ({"flags": True}, "flags: no number of 32 bits"),
        ({"body": "Example log record"}, "body: no object"),
        ({"body": {"stringValue": "a", "intValue": "1"}}, "body: more than one value"),
        ({"body": {"bytesValue": "?"}}, "bytesValue: no base64"),
        ({"attributes": {"a": "b"}}, "attributes: no list"),
        ({"attributes": [attribute("n", intValue=10)]}, "intValue: no text of a signed number of 64 bits"),
        ({"attributes": [attribute("n", intValue=str(2**63))]}, "intValue: no text of a signed number"),
        ({"attributes": [attribute("n", doubleValue="1.5")]}, "doubleValue: no number"),
        ({"attributes": [attribute("n", boolValue="true")]}, "boolValue: neither true nor false"),
        ({"attributes": [attribute("n", stringValue=None)]}, "stringValue: no text"),
        ({"attributes": [attribute("n"), attribute("n")]}, "attributes: a key occurs twice in ['n', 'n']"),
        ({"attributes": [{"value": {"intValue": "1"}}]}, "attributes: a key is empty"),
        ({"attributes": [attribute("m", kvlistValue={"values": [attribute("x", number=1)]})]}, "no field number"),
    ],
)
def test_a_record_that_does_not_follow_the_mapping(receiver: Receiver, change: dict[str, Any], words: str) -> None:
    answer = export(receiver, request({**RECORD, **change}))
    assert answer.status == 400
    assert words in answer.json()["message"]
    assert len(receiver.violations) == 1
    assert words in receiver.violations[0]
    assert receiver.events == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\x0a\x00", "Expecting value"),
        ([], "request: no object"),
        (request(RECORD, dropped=1), "request: no field dropped"),
        ({"resource_logs": []}, "request: no field resource_logs"),
        (request(RECORD, resource={"attributes": [], "id": "x"}), "resource: no field id"),
    ],
)
def test_a_request_that_does_not_follow_the_mapping(receiver: Receiver, body: Any, words: str) -> None:
    assert export(receiver, body).status == 400
    assert words in receiver.violations[0]


def test_a_partial_success_counts_the_rejected_records(receiver: Receiver) -> None:
    receiver.fail_next(Fault.refuses(0, 2))
    answer = export(receiver, request(RECORD, {**RECORD, "eventName": "kept"}, RECORD))
    assert answer.status == 200
    assert answer.json()["partialSuccess"]["rejectedLogRecords"] == "2"
    assert receiver.ids("eventName") == ["kept"]


@pytest.mark.parametrize("success", [{}, {"partialSuccess": None}, {"partialSuccess": {}}])
def test_a_full_success_in_the_forms_of_real_servers(success: dict[str, Any]) -> None:
    with Receiver("otlp", success=success) as receiver:
        assert export(receiver, request(RECORD)).json() == success
        assert len(receiver.events) == 1


def test_headers_are_asked_for() -> None:
    with Receiver("otlp", headers={"api-key": "k"}) as receiver:
        assert export(receiver, request(RECORD)).status == 401
        assert export(receiver, request(RECORD), **{"Api-Key": "k"}).status == 200
        assert receiver.violations == []


def test_failures_are_told_as_a_status_message(receiver: Receiver) -> None:
    receiver.fail_next(Fault.answers(429, retry_after=3))
    answer = export(receiver, request(RECORD))
    assert (answer.status, answer.json()) == (429, {"code": 8, "message": "said by the receiver"})


def test_other_breaches(receiver: Receiver) -> None:
    assert export(receiver, request(RECORD), "/logs").status == 404
    assert export(receiver, request(RECORD), **{"Content-Type": "application/x-protobuf"}).status == 415
    assert receiver.violations == ["path /logs", "Content-Type application/x-protobuf"]
