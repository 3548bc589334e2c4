"""Progress tokens: taken from callers, replaced for vendors, and put back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.protocol.progress import MAX_NOTIFICATION_BYTES, ProgressToken, split_meta, with_caller_token, with_token


def note(**params: Any) -> bytes:
    """A vendor's notification."""
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode()


@pytest.mark.parametrize(
    ("meta", "token", "rest"),
    [
        ({"progressToken": "a"}, "a", None),
        ({"progressToken": ""}, "", None),
        ({"progressToken": 0}, 0, None),
        ({"progressToken": 7, "traceparent": "00"}, 7, {"traceparent": "00"}),
        ({"traceparent": "00"}, None, {"traceparent": "00"}),
        ({"progressToken": True, "x": 1}, None, {"x": 1}),
        ({"progressToken": 1.5}, None, None),
        ({"progressToken": None}, None, None),
        ({"progressToken": ["a"]}, None, None),
        ({}, None, None),
        (None, None, None),
        ([1], None, None),
    ],
)
def test_a_callers_meta(meta: object, token: ProgressToken | None, rest: dict[str, Any] | None) -> None:
    assert split_meta(meta) == (token, rest)


def test_the_token_goes_beside_what_else_is_in_meta() -> None:
    params = {"name": "x", "_meta": {"traceparent": "00"}}
    assert with_token(params, 5) == {"name": "x", "_meta": {"traceparent": "00", "progressToken": 5}}
    assert params == {"name": "x", "_meta": {"traceparent": "00"}}
    assert with_token({"name": "x"}, 5) == {"name": "x", "_meta": {"progressToken": 5}}


@pytest.mark.parametrize("token", ["mine", "", 'qu"ote\n', "tökén", 1, 0, -3, 2**64, 10**40])
def test_the_callers_token_is_put_back_as_it_was_sent(token: ProgressToken) -> None:
    message = with_caller_token(note(progressToken=5, progress=1, total=3, message="one of three"), 5, token)
    assert message is not None
    assert json.loads(message) == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1, "total": 3, "message": "one of three"},
    }
    assert type(json.loads(message)["params"]["progressToken"]) is type(token)


def test_everything_else_in_the_params_stays_the_bytes_it_was() -> None:
    raw = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.50,"x":[ 1e2],"progressToken":5}}'
    assert with_caller_token(raw, 5, "a") == raw.replace(b'"progressToken":5', b'"progressToken":"a"')


def test_members_beside_the_params_are_left_behind() -> None:
    raw = b'{"jsonrpc":"2.0","method":"notifications/progress","extra":1,"params":{"progressToken":5,"progress":1}}'
    message = with_caller_token(raw, 5, 1)
    assert message is not None
    assert set(json.loads(message)) == {"jsonrpc", "method", "params"}


def test_a_token_given_twice_is_relayed_once() -> None:
    raw = b'{"jsonrpc":"2.0","method":"x","params":{"progressToken":9,"progress":1,"progressT\\u006fken":5}}'
    message = with_caller_token(raw, 5, "mine")
    assert message is not None
    assert json.loads(message, object_pairs_hook=list)[2][1] == [("progressToken", "mine"), ("progress", 1)]


@pytest.mark.parametrize(
    "raw",
    [
        note(progressToken=6, progress=1),
        note(progressToken="5", progress=1),
        note(progressToken=True, progress=1),
        note(progressToken=5),
        note(progressToken=5, progress="much"),
        note(progressToken=5, progress=None),
        note(progressToken=5, progress=1, total="all"),
        note(progressToken=5, progress=1, message={"text": "x"}),
        note(progress=1),
        b'{"jsonrpc":"2.0","method":"notifications/progress"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":[5]}',
        b'{"jsonrpc":"2.0","method":"x","params":{"progressToken":5,"progress":1,"x":'
        + b"[" * 9_000
        + b"]" * 9_000
        + b"}}",
        b'{"jsonrpc":"2.0","method":"x","params":{"progressToken":5,"progress":1e999}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"progressToken":5,"progress":1,"message":"\xff"}}',
        b"{",
    ],
)
def test_what_is_no_progress_of_the_call_is_dropped(raw: bytes) -> None:
    assert with_caller_token(raw, 5, 5) is None


def test_a_notification_has_a_size_at_most_before_and_after() -> None:
    free_bytes = MAX_NOTIFICATION_BYTES - len(note(progressToken=5, progress=1, message=""))
    fits = note(progressToken=5, progress=1, message="x" * free_bytes)
    assert with_caller_token(fits, 5, 7) is not None
    assert with_caller_token(fits + b" ", 5, 7) is None
    assert with_caller_token(note(progressToken=5, progress=1), 5, "x" * MAX_NOTIFICATION_BYTES) is None
