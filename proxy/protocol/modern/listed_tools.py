"""Pure: the tools in a modern vendor's list that a client may use."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from proxy.protocol.modern import param_headers

_MENTIONED: Final = param_headers.ANNOTATION.encode()

_objects = msgspec.json.Decoder(dict[str, Raw])
_lists = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode


def usable(raw_result: bytes) -> bytes:
    """A result of `tools/list` without the tools whose annotation `x-mcp-header` is invalid.

    Spec: MCP 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters
    """
    if _MENTIONED not in raw_result:
        return raw_result
    try:
        members = _objects.decode(raw_result)
        tools = _lists.decode(members.get("tools", b"[]"))
    except (msgspec.DecodeError, RecursionError):
        return raw_result  # the reader of the list finds the fault
    members["tools"] = Raw(_encode([each for each in tools if _is_usable(each)]))
    return _encode(members)


def _is_usable(tool: Raw) -> bool:
    try:
        return param_headers.is_valid(bytes(tool))
    except (msgspec.DecodeError, RecursionError):
        return True  # as above: it costs the vendor this entry, not the list
