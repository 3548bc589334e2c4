"""Pure: a modern request: its `_meta`, its headers and its version, checked in the order of the specification."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from proxy.protocol import jsonrpc, log_levels
from proxy.protocol.jsonrpc import Message, MessageId
from proxy.protocol.modern import headers as mcp_headers
from proxy.protocol.modern.errors import UNSUPPORTED_VERSION, Refusal, header_mismatch
from proxy.protocol.modern.headers import McpHeaders
from proxy.protocol.modern.revision import PROTOCOL_VERSION, SERVED

CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
_ECHOED_CHARACTERS: Final = 64


class ModernRequest(msgspec.Struct, frozen=True):
    """`log_level` is None for a caller that wants no log messages."""

    id: MessageId
    method: str
    params: dict[str, Any]
    capabilities: dict[str, Any]
    log_level: str | None


def read_message(message: Message, headers: McpHeaders) -> ModernRequest | Refusal | None:
    """None for a notification, which needs no header and has no answer."""
    if isinstance(message, jsonrpc.Notification):
        return None
    if isinstance(message, jsonrpc.Response):
        return Refusal(None, 400, jsonrpc.INVALID_REQUEST, "Responses are not accepted: the server sends no requests.")
    if isinstance(message, jsonrpc.Invalid):
        return Refusal(message.id, 400, message.code, message.message)
    meta = message.params.get("_meta")
    if type(meta) is not dict:
        text = f"params._meta must be an object with {PROTOCOL_VERSION} and {CLIENT_CAPABILITIES}."
        return Refusal(message.id, 400, jsonrpc.INVALID_PARAMS, text)
    fault = _fault_of(meta)
    if fault is not None:
        return Refusal(message.id, 400, jsonrpc.INVALID_PARAMS, fault)
    version = meta[PROTOCOL_VERSION]
    contradiction = mcp_headers.contradiction(headers, version, message.method, message.params)
    if contradiction is not None:
        return header_mismatch(message.id, contradiction)
    if version not in SERVED:
        data = {"supported": SERVED, "requested": version[:_ECHOED_CHARACTERS]}
        return Refusal(message.id, 400, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return ModernRequest(message.id, message.method, message.params, meta[CLIENT_CAPABILITIES], meta.get(LOG_LEVEL))


def batch_refusal() -> Refusal:
    return Refusal(None, 400, jsonrpc.INVALID_REQUEST, "Batches are not part of this protocol version.")


def _fault_of(meta: dict[str, Any]) -> str | None:
    if type(meta.get(PROTOCOL_VERSION)) is not str:
        return f"params._meta must have {PROTOCOL_VERSION}, a string."
    if type(meta.get(CLIENT_CAPABILITIES)) is not dict:
        return f"params._meta must have {CLIENT_CAPABILITIES}, an object."
    if type(meta.get(CLIENT_INFO, {})) is not dict:
        return f"{CLIENT_INFO} must be an object."
    level = meta.get(LOG_LEVEL, "info")
    if type(level) is not str or level not in log_levels.RANKS:
        return f"{LOG_LEVEL} must be one of {', '.join(log_levels.RANKS)}."
    return None
