"""Pure: JSON-RPC 2.0 as used by MCP. Parses callers' messages and writes messages as bytes."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from gateway.lib.sentences import plain

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603


MessageId: TypeAlias = str | int

_encode = msgspec.json.Encoder(enc_hook=plain).encode


class Request(msgspec.Struct, frozen=True):
    """`params` is {} if absent."""

    id: MessageId
    method: str
    params: dict[str, Any]


class Notification(msgspec.Struct, frozen=True):
    """A message without an answer."""

    method: str
    params: dict[str, Any]


class Response(msgspec.Struct, frozen=True):
    """A caller's answer to a question of a vendor. `id` is None if it is unreadable."""

    id: MessageId | None = None
    result: Any = None
    error: Any = None


class Invalid(msgspec.Struct, frozen=True):
    """The error to answer with; `id` is None if it was unreadable."""

    id: MessageId | None
    code: int
    message: str


Message: TypeAlias = Request | Notification | Response | Invalid


def parse_message(obj: object) -> Message:
    """Never raises. INVALID_PARAMS if the params are no object, else INVALID_REQUEST. Spec: protocol.md A.4 · D106"""
    if type(obj) is not dict:
        return Invalid(None, INVALID_REQUEST, "A message must be an object.")
    message_id = obj.get("id")
    readable_id = message_id if type(message_id) in (str, int) else None  # not isinstance: a bool is an int
    if obj.get("jsonrpc") != "2.0":
        return Invalid(readable_id, INVALID_REQUEST, 'A message must have "jsonrpc": "2.0".')
    if "method" not in obj and ("result" in obj or "error" in obj):
        return Response(readable_id, obj.get("result"), obj.get("error"))
    method = obj.get("method")
    if type(method) is not str:
        return Invalid(readable_id, INVALID_REQUEST, "The method must be a string.")
    params = obj.get("params")
    if params is None:  # some clients send null
        params = {}
    if "id" not in obj:
        if type(params) is not dict:
            return Invalid(None, INVALID_REQUEST, "The params must be an object.")
        return Notification(method, params)
    if readable_id is None:
        return Invalid(None, INVALID_REQUEST, "The id must be a string or an integer.")
    if type(params) is not dict:
        return Invalid(readable_id, INVALID_PARAMS, "The params must be an object.")
    return Request(readable_id, method, params)


def result_bytes(message_id: MessageId, raw_result: bytes) -> bytes:
    """`raw_result` is copied without parsing."""
    return b"%b%b}" % (result_head(message_id), raw_result)


def result_head(message_id: MessageId) -> bytes:
    """A response up to its result, which a closing brace follows."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % _encode(message_id)


def result(message_id: MessageId, obj: object) -> bytes:
    return result_bytes(message_id, _encode(obj))


def error_bytes(message_id: MessageId | None, raw_error: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(message_id), raw_error)


def error(message_id: MessageId | None, code: int, message: str, data: object = None) -> bytes:
    members: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        members["data"] = data
    return error_bytes(message_id, _encode(members))


def request(message_id: MessageId, method: str, params: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        _encode(message_id),
        _encode(method),
        _encode(params),
    )


def notification(method: str, params: object = None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % _encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), _encode(params))


def batch_bytes(answers: Iterable[bytes]) -> bytes:
    return b"[%b]" % b",".join(answers)
