"""The receiver of _bulk takes what the documentation shows, and finds what it does not allow."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from tests.receivers import Fault, Receiver
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end
KEY = base64.b64encode(b"id:key").decode()
HEADERS = {"Authorization": f"ApiKey {KEY}", "Content-Type": "application/x-ndjson"}
ACTION = b'{"create":{"_index":"logs-a","_id":"1"}}\n'
SOURCE = b'{"@timestamp":"2026-11-01T10:00:00Z","field1":"value1"}\n'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver("elasticsearch", api_key=KEY) as started:
        yield started


def bulk(receiver: Receiver, body: bytes, path: str = "/_bulk", **headers: str) -> Answer:
    return send(receiver, path, body, {**HEADERS, **headers})


def operations(*ids: str) -> bytes:
    return b"".join(as_json({"create": {"_index": "logs-a", "_id": each}}) + b"\n" + SOURCE for each in ids)


def statuses(answer: Answer) -> list[int]:
    return [item["create"]["status"] for item in answer.json()["items"]]


def test_documents_are_created_once(receiver: Receiver) -> None:
    first, second = bulk(receiver, operations("1", "2")), bulk(receiver, operations("2", "3"))
    assert (first.status, first.json()["errors"], statuses(first)) == (200, False, [201, 201])
    assert (second.status, second.json()["errors"], statuses(second)) == (200, True, [409, 201])
    assert second.json()["items"][0]["create"]["error"] == {
        "type": "version_conflict_engine_exception",
        "reason": "[2]: version conflict, document already exists (current version [1])",
        "shard": "0",
        "index": "logs-a",
    }
    assert receiver.ids("_id") == ["1", "2", "3"]
    assert receiver.events[0]["_source"]["field1"] == "value1"
    assert receiver.violations == []


def test_the_index_may_be_in_the_address(receiver: Receiver) -> None:
    assert statuses(bulk(receiver, b'{"create":{"_id":"1"}}\n' + SOURCE, "/logs-b/_bulk?filter_path=items")) == [201]
    assert receiver.ids("_index") == ["logs-b"]
    assert receiver.violations == []


def test_items_are_refused_for_good_and_for_now(receiver: Receiver) -> None:
    receiver.fail_next(Fault.refuses(1))
    receiver.fail_next(Fault.refuses(0, status=429))
    assert statuses(bulk(receiver, operations("1", "2", "3"))) == [201, 400, 201]
    busy = bulk(receiver, operations("4", "5"))
    assert statuses(busy) == [429, 201]
    assert busy.json()["items"][0]["create"]["error"]["type"] == "es_rejected_execution_exception"
    assert receiver.ids("_id") == ["1", "3", "5"]
    assert receiver.violations == []


def test_a_wrong_key_is_refused_and_a_missing_one_is_a_breach(receiver: Receiver) -> None:
    other = base64.b64encode(b"id:other").decode()
    assert bulk(receiver, operations("1"), Authorization=f"ApiKey {other}").status == 401
    assert receiver.violations == []
    assert bulk(receiver, operations("1"), Authorization=f"Bearer {KEY}").status == 401
    assert bulk(receiver, operations("1"), Authorization="ApiKey plain").status == 401
    assert receiver.violations == ["no Authorization: ApiKey", "the key is not base64"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "request body is required"),
        (ACTION + SOURCE.rstrip(), "The bulk request must be terminated by a newline [\\n]"),
        (ACTION, "an operation without its document"),
        (b'[{"create":{}}]\n' + SOURCE, "Malformed action/metadata line [1], expected one [create]"),
        (ACTION.replace(b"create", b"index") + SOURCE, "Malformed action/metadata line [1], expected one [create]"),
        (ACTION + b"{\n", "Malformed action/metadata line [1]"),
        (ACTION + SOURCE + b"\n" + SOURCE, "Malformed action/metadata line [3]"),
        (ACTION.replace(b"_id", b"_type") + SOURCE, "contains an unknown parameter [_type]"),
        (b'{"create":{"_id":"1"}}\n' + SOURCE, "index is missing or invalid: None;"),
        (ACTION.replace(b"logs-a", b"Logs") + SOURCE, "index is missing or invalid: Logs;"),
        (ACTION.replace(b'"1"', b"1") + SOURCE, "id 1 is missing"),
        (ACTION.replace(b'"1"', b'"' + b"x" * 513 + b'"') + SOURCE, "longer than 512 bytes"),
    ],
)
def test_a_malformed_body_is_refused_whole(receiver: Receiver, body: bytes, words: str) -> None:
    answer = bulk(receiver, body)
    assert answer.status == 400
    assert words in answer.json()["error"]["reason"]
    assert len(receiver.violations) == 1
    assert words in receiver.violations[0]
    assert receiver.events == []


def test_other_breaches(receiver: Receiver) -> None:
    assert bulk(receiver, ACTION + b'{"field1":"value1"}\n').status == 200
    assert bulk(receiver, operations("2"), "/_bulk?token=x").status == 400
    assert bulk(receiver, operations("2"), "/a/b/_bulk").status == 400
    assert bulk(receiver, operations("2"), **{"Content-Type": "text/plain"}).status == 406
    assert receiver.violations == [
        "the document of line 2 is no object with an @timestamp",
        "request [/_bulk] contains unrecognized parameter: [token]",
        "path /a/b/_bulk",
        "Content-Type header [text/plain] is not supported",
    ]
