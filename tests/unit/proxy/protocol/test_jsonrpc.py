"""Messages of callers taken apart, and answers built around bytes that are JSON already."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.protocol import jsonrpc
from proxy.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Invalid,
    Notification,
    Request,
    Response,
    parse_message,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["jsonrpc", "id", "method", "params", "result", "error"], JSON)
)


def ping(message_id: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "method": "ping"}


@pytest.mark.parametrize("message_id", [1, 0, -7, 10**63, "1", "", "é"])
def test_a_request_keeps_its_id(message_id: str | int) -> None:
    assert parse_message(ping(message_id)) == Request(message_id, "ping", {})


@pytest.mark.parametrize("message_id", [None, True, False, 1.0, 1.5, [1], {"a": 1}])
def test_ids_are_strings_or_integers(message_id: object) -> None:
    assert parse_message(ping(message_id)) == Invalid(None, INVALID_REQUEST, "The id must be a string or an integer.")


def test_params_come_through_as_they_are() -> None:
    params = {"name": "x", "arguments": {"a": [1, None]}}
    assert parse_message(ping() | {"params": params}) == Request(1, "ping", params)
    assert parse_message({"jsonrpc": "2.0", "method": "n", "params": params}) == Notification("n", params)


def test_null_params_are_none() -> None:
    assert parse_message(ping() | {"params": None}) == Request(1, "ping", {})


@pytest.mark.parametrize("params", [[], [1], "x", 5, True])
def test_params_must_be_an_object(params: object) -> None:
    assert parse_message(ping("a") | {"params": params}) == Invalid(
        "a", INVALID_PARAMS, "The params must be an object."
    )
    notification = {"jsonrpc": "2.0", "method": "n", "params": params}
    assert parse_message(notification) == Invalid(None, INVALID_REQUEST, "The params must be an object.")


def test_a_message_without_id_is_a_notification() -> None:
    assert parse_message({"jsonrpc": "2.0", "method": "notifications/initialized"}) == Notification(
        "notifications/initialized", {}
    )


@pytest.mark.parametrize("member", [{"result": {}}, {"error": {"code": 1, "message": "x"}}, {"result": None}])
def test_an_answer_is_a_response(member: dict[str, Any]) -> None:
    assert parse_message({"jsonrpc": "2.0", "id": 1} | member) == Response(1, member.get("result"), member.get("error"))


@pytest.mark.parametrize("message_id", [None, True, 1.5, [1], {}])
def test_an_answer_may_have_an_unreadable_id(message_id: object) -> None:
    assert parse_message({"jsonrpc": "2.0", "id": message_id, "result": {}}) == Response(None, {})


@pytest.mark.parametrize("obj", [None, 1, "ping", True, [], [ping()]])
def test_a_message_is_an_object(obj: object) -> None:
    assert parse_message(obj) == Invalid(None, INVALID_REQUEST, "A message must be an object.")


@pytest.mark.parametrize("version", [None, "1.0", 2.0, 2, "2.0 "])
def test_the_version_of_json_rpc_is_demanded(version: object) -> None:
    refused = parse_message(ping(9) | {"jsonrpc": version})
    assert refused == Invalid(9, INVALID_REQUEST, 'A message must have "jsonrpc": "2.0".')


def test_an_unreadable_id_is_null_in_the_refusal() -> None:
    assert parse_message({"id": True, "method": "ping"}) == Invalid(
        None, INVALID_REQUEST, 'A message must have "jsonrpc": "2.0".'
    )


@pytest.mark.parametrize("method", [None, 1, ["ping"], {}])
def test_a_method_is_a_string(method: object) -> None:
    assert parse_message(ping(3) | {"method": method}) == Invalid(3, INVALID_REQUEST, "The method must be a string.")
    assert parse_message({"jsonrpc": "2.0", "id": 3}) == Invalid(3, INVALID_REQUEST, "The method must be a string.")


@settings(deadline=None)
@given(obj=JSON | MEMBERS)
def test_any_json_is_some_message_and_an_invalid_one_can_be_answered(obj: Any) -> None:
    message = parse_message(obj)
    if isinstance(message, Invalid):
        answer = json.loads(jsonrpc.error(message.id, message.code, message.message))
        assert answer["error"]["code"] in (INVALID_REQUEST, INVALID_PARAMS)
        assert answer["id"] is None or answer["id"] == obj["id"]
    else:
        assert obj["jsonrpc"] == "2.0"


def test_a_raw_result_is_copied_byte_for_byte() -> None:
    raw = b'{ "content" : [], "x": 1.00, "y": "\\u00e9" }'
    assert jsonrpc.result_bytes("a", raw) == b'{"jsonrpc":"2.0","id":"a","result":' + raw + b"}"


def test_a_raw_error_is_copied_byte_for_byte() -> None:
    raw = b'{"code": -1, "message": "no", "data": [1.0]}'
    assert jsonrpc.error_bytes(None, raw) == b'{"jsonrpc":"2.0","id":null,"error":' + raw + b"}"


@settings(deadline=None)
@given(message_id=st.integers() | st.text(), value=st.dictionaries(st.text(), st.text()))
def test_built_messages_are_json(message_id: str | int, value: dict[str, str]) -> None:
    head = {"jsonrpc": "2.0", "id": message_id}
    assert json.loads(jsonrpc.result(message_id, value)) == head | {"result": value}
    assert json.loads(jsonrpc.request(message_id, "m", value)) == head | {"method": "m", "params": value}
    assert json.loads(jsonrpc.error(message_id, -1, "no", value)) == head | {
        "error": {"code": -1, "message": "no", "data": value}
    }


def test_an_error_without_data_has_no_data_member() -> None:
    answer = jsonrpc.error(None, jsonrpc.PARSE_ERROR, "no JSON")
    assert answer == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}'


def test_an_error_keeps_data_that_is_empty() -> None:
    assert json.loads(jsonrpc.error(1, -1, "no", {}))["error"]["data"] == {}


def test_a_notification_has_params_only_if_given_any() -> None:
    assert jsonrpc.notification("n") == b'{"jsonrpc":"2.0","method":"n"}'
    assert jsonrpc.notification("n", {"a": 1}) == b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}'


def test_answers_to_a_batch_are_one_array() -> None:
    answers = [jsonrpc.result(1, {}), jsonrpc.error(2, -1, "no")]
    assert json.loads(jsonrpc.batch_bytes(answers)) == [json.loads(answer) for answer in answers]
    assert jsonrpc.batch_bytes([]) == b"[]"
