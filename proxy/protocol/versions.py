"""Pure: the supported MCP versions, and the version of a request."""

from typing import Final

import msgspec

from proxy.protocol import jsonrpc

NEWEST_FIRST: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NEWEST: Final = NEWEST_FIRST[0]
FALLBACK: Final = "2025-03-26"  # of a request without the header

_KNOWN: Final = frozenset(NEWEST_FIRST)
_WITH_BATCHES: Final = frozenset({"2025-03-26", "2024-11-05"})  # the newer versions removed them
_ECHOED_CHARACTERS: Final = 64


class UnsupportedVersion(msgspec.Struct, frozen=True):
    """Answer `body` with HTTP 400: newer clients probe with their version, and do not fall back on 5xx or 403."""

    requested: str

    def body(self, message_id: jsonrpc.MessageId | None) -> bytes:
        """The text that makes strict clients fall back. Spec: protocol.md A.3"""
        requested = self.requested[:_ECHOED_CHARACTERS].encode("ascii", "replace").decode()
        data = {"supported": NEWEST_FIRST, "requested": requested}
        return jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, "Unsupported protocol version", data)


def negotiate(requested: object) -> str:
    """The version to answer `initialize` with. Spec: §4.15"""
    return requested if isinstance(requested, str) and requested in _KNOWN else FALLBACK


def check_header(value: str | None, method: str | None) -> str | UnsupportedVersion:
    """The version in `MCP-Protocol-Version`; `method` is None for a batch. Spec: D109 · protocol.md A.3"""
    if value is None or method == "initialize":  # there the body negotiates
        return FALLBACK
    return value if value in _KNOWN else UnsupportedVersion(value)


def batches_allowed(version: str) -> bool:
    """Spec: D107"""
    return version in _WITH_BATCHES
