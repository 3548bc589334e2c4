"""The batches that are read, and the kind of each of their entries."""

from typing import Any

import pytest
from django.test import override_settings

from proxy.protocol.jsonrpc import INVALID_REQUEST, Invalid, Message, Notification, Request, parse_message
from proxy.views.batches import read_batch

WITH_BATCHES, WITHOUT = "2025-03-26", "2025-06-18"


def ping(number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "ping"}


def read(*items: Any, version: str = WITH_BATCHES) -> list[Message] | Invalid:
    return read_batch(list(items), version)


def test_a_batch_keeps_its_order() -> None:
    notification = {"jsonrpc": "2.0", "method": "n"}
    assert read(ping(2), notification, 7, ping(1)) == [
        Request(2, "ping", {}),
        Notification("n", {}),
        parse_message(7),
        Request(1, "ping", {}),
    ]


def test_a_version_without_batches_refuses_them() -> None:
    text = "Batches are not part of this protocol version."
    assert read(ping(), version=WITHOUT) == Invalid(None, INVALID_REQUEST, text)


@pytest.mark.parametrize(("length", "taken"), [(0, False), (1, True), (20, True), (21, False), (10_000, False)])
def test_a_batch_holds_one_to_twenty_messages(length: int, taken: bool) -> None:
    batch = read(*(ping(number) for number in range(length)))
    if taken:
        assert isinstance(batch, list)
        assert len(batch) == length
    else:
        assert isinstance(batch, Invalid)
        assert (batch.id, batch.code) == (None, INVALID_REQUEST)


@override_settings(BATCH_ENTRIES=1)
def test_the_limit_of_a_batch_is_a_setting() -> None:
    assert read(ping(), ping()) == Invalid(None, INVALID_REQUEST, "A batch may hold at most 1 messages.")


def test_initialize_is_refused_inside_a_batch_only() -> None:
    initialize = ping(5) | {"method": "initialize"}
    assert parse_message(initialize) == Request(5, "initialize", {})
    assert read(initialize, ping()) == [
        Invalid(5, INVALID_REQUEST, "initialize must not be part of a batch."),
        Request(1, "ping", {}),
    ]


def test_a_batch_inside_a_batch_is_invalid() -> None:
    assert read([ping()]) == [Invalid(None, INVALID_REQUEST, "A message must be an object.")]
