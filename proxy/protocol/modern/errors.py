"""Pure: the errors of the modern revision: their codes, HTTP statuses and bytes.

Spec: MCP 2026-07-28, basic/index, Error Codes · docs/decisions/0102
"""

from typing import Any, Final

import msgspec
from msgspec import Raw

from gateway.lib.sentences import plain
from proxy.protocol import jsonrpc
from proxy.protocol.jsonrpc import MessageId

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
_NOT_FOUND_EARLIER: Final = -32002  # of a resource; the modern revision has INVALID_PARAMS in its place
# About one hop: the caller would mend its own request, or negotiate with the gateway again.
_OF_THE_VENDORS_HOP: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION, -32042})

_encode = msgspec.json.Encoder(enc_hook=plain).encode


class Refusal(msgspec.Struct, frozen=True):
    """An HTTP status and a JSON-RPC error. `id` is None if it is unknown."""

    id: MessageId | None
    status: int
    code: int
    message: str
    data: object = None

    @property
    def body(self) -> bytes:
        """Without an `id` if it is unknown: null is not allowed."""
        members: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            members["data"] = self.data
        if self.id is not None:
            return jsonrpc.error_bytes(self.id, _encode(members))
        return b'{"jsonrpc":"2.0","error":%b}' % _encode(members)


class _ErrorObject(msgspec.Struct):
    code: int
    message: str
    data: Raw = Raw(b"null")


class _Needs(msgspec.Struct, rename="camel"):
    required_capabilities: dict[str, Any]


_errors = msgspec.json.Decoder(_ErrorObject)
_needs = msgspec.json.Decoder(_Needs)


def method_not_found(message_id: MessageId) -> Refusal:
    return Refusal(message_id, 404, jsonrpc.METHOD_NOT_FOUND, "Method not found")


def header_mismatch(message_id: MessageId, text: str) -> Refusal:
    return Refusal(message_id, 400, HEADER_MISMATCH, f"Header mismatch: {text}")


def of_vendor(message_id: MessageId, raw_error: bytes, capabilities: dict[str, Any]) -> tuple[int, bytes]:
    """The HTTP status and the bytes of a vendor's error for a caller with these capabilities.

    Most pass unchanged. Errors about the gateway's own request to the vendor become INTERNAL_ERROR, but for a
    capability that the caller lacks indeed. Codes that the revision has removed are replaced.
    """
    error = _errors.decode(raw_error)
    if error.code == MISSING_CAPABILITY:
        needed = _needed(error.data)
        if needed and not needed.keys() <= capabilities.keys():
            needs = {"requiredCapabilities": needed}
            return 400, jsonrpc.error(message_id, MISSING_CAPABILITY, error.message, needs)
    if error.code in _OF_THE_VENDORS_HOP:
        text = f"The vendor refused the gateway's request: {error.message}"
        data = {"reason": "vendor_error", "code": error.code}
        return 200, jsonrpc.error(message_id, jsonrpc.INTERNAL_ERROR, text, data)
    if error.code == _NOT_FOUND_EARLIER:
        data_or_none = None if bytes(error.data) == b"null" else error.data
        return 200, jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, error.message, data_or_none)
    return 200, jsonrpc.error_bytes(message_id, raw_error)


def _needed(data: Raw) -> dict[str, Any]:
    """{} for anything but capabilities."""
    try:
        return _needs.decode(data).required_capabilities
    except (msgspec.DecodeError, RecursionError):
        return {}
