"""The receiver of Better Stack takes what the documentation shows, and finds what it does not allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.receivers import Receiver
from tests.unit.receivers.talking import Answer, as_json, send

pytestmark = pytest.mark.one_back_end


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver("better_stack", token="source") as started:
        yield started


def ingest(receiver: Receiver, body: bytes, path: str = "/", **headers: str) -> Answer:
    return send(receiver, path, body, {"Authorization": "Bearer source", "Content-Type": "application/json", **headers})


@pytest.mark.parametrize(
    "at",
    [
        "2022-12-31T13:45:59.123456Z",
        "2022-12-31 13:45:59.123456+02:00",
        "2023-08-09 07:03:30+00:00",
        1672490759,
        1672490759123,
        1672490759123456000,
    ],
)
def test_the_documented_samples(receiver: Receiver, at: Any) -> None:
    answer = ingest(receiver, as_json([{"message": "A", "dt": at}, {"message": "B", "dt": at}]))
    assert answer[:2] == (202, b"")
    assert receiver.ids("message") == ["A", "B"]
    assert receiver.violations == []


@pytest.mark.parametrize(
    "at", [None, "", "yesterday", "2022-12-31T13:45:59", "2022-02-31T00:00:00Z", 1672490759.5, True]
)
def test_a_time_that_would_be_taken_for_a_text(receiver: Receiver, at: Any) -> None:
    assert ingest(receiver, as_json([{"dt": at}])).status == 202
    assert receiver.violations == [f"event 0: dt is no time: {at!r}"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"message": "A"}', b'["A"]', b'{"dt": 1}\n{"dt": 2}'])
def test_a_body_that_is_no_list_of_objects(receiver: Receiver, body: bytes) -> None:
    assert ingest(receiver, body)[:2] == (406, b"Couldn't parse JSON content.")
    assert len(receiver.violations) == 1


def test_a_wrong_token_is_refused_and_a_missing_one_is_a_breach(receiver: Receiver) -> None:
    assert ingest(receiver, b"[]", Authorization="Bearer other")[:2] == (403, b"Unauthorized")
    assert receiver.violations == []
    assert ingest(receiver, b"[]", Authorization="source").status == 403
    assert ingest(receiver, b"[]", "/logs").status == 404
    assert receiver.violations == ["no Authorization: Bearer TOKEN", "path /logs"]


def test_a_body_that_is_too_large(receiver: Receiver) -> None:
    assert ingest(receiver, b" " * (10 * 1024 * 1024 + 1))[:2] == (413, b"payload reached size limit")
    assert receiver.violations == []
