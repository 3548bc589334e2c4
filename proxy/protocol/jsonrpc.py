"""Pure: JSON-RPC 2.0 as MCP uses it. Takes a caller's message apart and writes messages as bytes."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

BATCH_LIMIT: Final = 20

MessageId: TypeAlias = str | int

_encode = msgspec.json.Encoder().encode


class Request(msgspec.Struct, frozen=True):
    """A call that must be answered. `params` is {} when the caller left it out."""

    id: MessageId
    method: str
    params: dict[str, Any]


class Notification(msgspec.Struct, frozen=True):
    """A message that must not be answered."""

    method: str
    params: dict[str, Any]


class Response(msgspec.Struct, frozen=True):
    """An answer to a request. We never ask callers anything, so it is accepted and ignored."""


class Invalid(msgspec.Struct, frozen=True):
    """What to answer to a message that is none: `id` is the message's own where it could be read."""

    id: MessageId | None
    code: int
    message: str


Message: TypeAlias = Request | Notification | Response | Invalid


def parse_message(obj: object) -> Message:
    """Return what one decoded JSON value is. Never raises: what is no message comes back as `Invalid`.

    Ids are strings and integers; null, fractions and booleans are not. Params that are not an object make a request
    `Invalid` with INVALID_PARAMS, every other fault with INVALID_REQUEST.

    Spec: protocol.md A.4 · D106
    """
    if type(obj) is not dict:
        return Invalid(None, INVALID_REQUEST, "A message must be an object.")
    message_id = obj.get("id")
    readable_id = message_id if type(message_id) in (str, int) else None  # `type`, because a bool is an int as well
    if obj.get("jsonrpc") != "2.0":
        return Invalid(readable_id, INVALID_REQUEST, 'A message must have "jsonrpc": "2.0".')
    if "method" not in obj and ("result" in obj or "error" in obj):
        return Response()
    method = obj.get("method")
    if type(method) is not str:
        return Invalid(readable_id, INVALID_REQUEST, "The method must be a string.")
    params = obj.get("params")
    if params is None:  # some clients write null where they mean nothing
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


def parse_batch(items: list[Any], limit: int = BATCH_LIMIT) -> list[Message] | Invalid:
    """Return the messages of a batch in their order, or `Invalid` if the batch as a whole cannot be taken.

    An `initialize` inside a batch is `Invalid` on its own: the handshake has to come first and alone.

    Spec: protocol.md A.4 · D107
    """
    if not items:
        return Invalid(None, INVALID_REQUEST, "A batch must not be empty.")
    if len(items) > limit:
        return Invalid(None, INVALID_REQUEST, f"A batch may hold at most {limit} messages.")
    return [_parse_batched(item) for item in items]


def _parse_batched(item: object) -> Message:
    message = parse_message(item)
    if isinstance(message, Request) and message.method == "initialize":
        return Invalid(message.id, INVALID_REQUEST, "initialize must not be part of a batch.")
    return message


def result_bytes(message_id: MessageId, raw_result: bytes) -> bytes:
    """Return the answer to `message_id` around a result that is JSON already: it is copied, not read."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(message_id), raw_result)


def result(message_id: MessageId, obj: object) -> bytes:
    """Return the answer to `message_id` whose result is `obj`."""
    return result_bytes(message_id, _encode(obj))


def error_bytes(message_id: MessageId | None, raw_error: bytes) -> bytes:
    """Return the error answer to `message_id` around an error object that is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(message_id), raw_error)


def error(message_id: MessageId | None, code: int, message: str, data: object = None) -> bytes:
    """Return the error answer to `message_id`; it has no `data` member when `data` is None."""
    members: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        members["data"] = data
    return error_bytes(message_id, _encode(members))


def request(message_id: MessageId, method: str, params: object) -> bytes:
    """Return a request of ours to a vendor."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        _encode(message_id),
        _encode(method),
        _encode(params),
    )


def notification(method: str, params: object = None) -> bytes:
    """Return a notification; it has no `params` member when `params` is None."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % _encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), _encode(params))


def batch_bytes(answers: Iterable[bytes]) -> bytes:
    """Return the answer to a batch: the answers to its requests as one array."""
    return b"[%b]" % b",".join(answers)
