"""The receiver of Loki's push takes what the documentation shows, and finds what it does not allow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.receivers import Fault, Receiver
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end
# The documentation's own example, sent a second after its time.
SAMPLE = b'{"streams": [{ "stream": { "foo": "bar2" }, "values": [ [ "1570818238000000000", "fizzbuzz" ] ] }]}'
NOW = datetime.fromtimestamp(1570818239, UTC)
NOW_NS = 1570818239 * 10**9
HOUR_NS, DAY_NS = 3600 * 10**9, 86400 * 10**9


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver("loki", clock=lambda: NOW) as started:
        yield started


def push(receiver: Receiver, body: bytes, path: str = "/loki/api/v1/push", **headers: str) -> Answer:
    return send(receiver, path, body, {"Content-Type": "application/json", **headers})


def stream(*values: Any, **labels: Any) -> bytes:
    return as_json({"streams": [{"stream": labels, "values": list(values)}]})


def line(at_ns: int, text: str = "x") -> list[str]:
    return [str(at_ns), text]


def test_the_documented_sample(receiver: Receiver) -> None:
    assert push(receiver, SAMPLE)[:2] == (204, b"")
    metadata = {"trace_id": "0242ac120002", "user_id": "superUser123"}
    assert push(receiver, stream([*line(NOW_NS, '{"id": 7}'), metadata], foo="bar2")).status == 204
    assert receiver.events == [
        {"stream": {"foo": "bar2"}, "time_ns": "1570818238000000000", "line": "fizzbuzz", "metadata": {}},
        {"stream": {"foo": "bar2"}, "time_ns": str(NOW_NS), "line": '{"id": 7}', "metadata": metadata},
    ]
    assert receiver.ids("line", "id") == [7]
    assert receiver.violations == []


def test_lines_that_are_too_old_too_new_too_long_or_too_far_behind(receiver: Receiver) -> None:
    values = [
        line(NOW_NS - 8 * DAY_NS, "too old"),
        line(NOW_NS, "good"),
        line(NOW_NS + HOUR_NS, "too new"),
        line(NOW_NS, "long" * 65_537),
        line(NOW_NS - 2 * HOUR_NS, "behind"),
        line(NOW_NS - HOUR_NS // 2, "a little behind"),
    ]
    answer = push(receiver, stream(*values, foo="bar"))
    words = answer.body.decode()
    assert answer.status == 400
    assert "has timestamp too old: 2019-10-03T18:23:59Z, oldest acceptable timestamp is: 2019-10-04T" in words
    assert "has timestamp too new: 2019-10-11T19:23:59Z" in words
    assert "Max entry size '262144' bytes exceeded for stream '{foo=\"bar\"}', length '262148' bytes" in words
    assert "reason: 'entry too far behind, entry timestamp is: 2019-10-11T16:23:59Z, oldest acceptable" in words
    assert words.endswith("user 'fake', total ignored: 4 out of 6 for stream: {foo=\"bar\"}")
    assert receiver.ids("line") == ["good", "a little behind"]
    assert receiver.violations == []


def test_another_stream_is_not_behind(receiver: Receiver) -> None:
    push(receiver, stream(line(NOW_NS), foo="a"))
    assert push(receiver, stream(line(NOW_NS - 2 * HOUR_NS), foo="b")).status == 204


def test_a_partial_failure_keeps_the_other_lines(receiver: Receiver) -> None:
    receiver.fail_next(Fault.refuses(0))
    assert push(receiver, stream(line(NOW_NS, "a"), line(NOW_NS, "b"), foo="a")).status == 400
    assert receiver.ids("line") == ["b"]


def test_a_tenant_and_a_password_are_asked_for() -> None:
    with Receiver("loki", tenant="t1", username="u", password="p", clock=lambda: NOW) as receiver:
        basic = {"Authorization": "Basic dTpw"}
        assert push(receiver, SAMPLE).status == 401
        assert push(receiver, SAMPLE, **basic)[:2] == (401, b"no org id")
        assert push(receiver, SAMPLE, **basic, **{"X-Scope-OrgID": "t1"}).status == 204
        assert receiver.violations == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b'{"streams": [], "streams": []}', "a name occurs twice"),
        (b"[]", "the body is no object of streams alone"),
        (as_json({"streams": [], "more": 1}), "the body is no object of streams alone"),
        (stream(line(NOW_NS)), "error at least one label pair is required per stream"),
        (stream(line(NOW_NS), **{"a.b": "x"}), "error parsing labels: 'a.b'"),
        (stream(line(NOW_NS), **{"1a": "x"}), "error parsing labels: '1a'"),
        (stream(line(NOW_NS), a=1), "or its value no text"),
        (stream(line(NOW_NS), a="x" * 2049), "label name or value too long: 'a'"),
        (stream(line(NOW_NS), **{f"l{n}": "x" for n in range(16)}), "has 16 label names; limit 15"),
        (stream(a="x"), "values no list with entries"),
        (stream([NOW_NS, "x"], a="x"), "is no text of nanoseconds"),
        (stream(["1570818239", "x"], a="x"), "the time '1570818239' is no text of nanoseconds"),
        (stream(line(NOW_NS)[:1], a="x"), "an entry is no list of time, line"),
        (stream([str(NOW_NS), {"msg": "x"}], a="x"), "an entry is no list of time, line"),
        (stream([*line(NOW_NS), {"n": 1}], a="x"), "structured metadata is no object of texts"),
        (stream([*line(NOW_NS), {"n": "x" * 70_000}], a="x"), "structured metadata too large"),
    ],
)
def test_a_malformed_push_is_refused_whole(receiver: Receiver, body: bytes, words: str) -> None:
    answer = push(receiver, body)
    assert answer.status == 400
    assert words in answer.body.decode()
    assert len(receiver.violations) == 1
    assert words in receiver.violations[0]
    assert receiver.events == []


def test_other_breaches(receiver: Receiver) -> None:
    assert push(receiver, as_json({"streams": []})).status == 422
    assert push(receiver, SAMPLE, "/api/prom/push").status == 404
    assert push(receiver, SAMPLE, **{"Content-Type": "application/x-protobuf"}).status == 400
    assert receiver.violations == [
        "error at least one valid stream is required for ingestion",
        "path /api/prom/push",
        "Content-Type application/x-protobuf",
    ]
