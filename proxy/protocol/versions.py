"""Pure: which MCP versions we speak, and which one a request speaks."""

from typing import Final

import msgspec

from proxy.protocol import jsonrpc

NEWEST_FIRST: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NEWEST: Final = NEWEST_FIRST[0]
FALLBACK: Final = "2025-03-26"

_KNOWN: Final = frozenset(NEWEST_FIRST)
_WITH_BATCHES: Final = frozenset({"2025-03-26", "2024-11-05"})
_ECHOED_CHARACTERS: Final = 64


class UnsupportedVersion(msgspec.Struct, frozen=True):
    """The request names a version we do not speak. Answer `body` with HTTP 400, never 5xx or 403.

    Newer clients probe with their own version first and fall back to the handshake only on such an answer.
    """

    requested: str

    def body(self, message_id: jsonrpc.MessageId | None) -> bytes:
        """Return the answer in the words that make strict clients fall back. Spec: protocol.md A.3"""
        requested = self.requested[:_ECHOED_CHARACTERS].encode("ascii", "replace").decode()
        data = {"supported": NEWEST_FIRST, "requested": requested}
        return jsonrpc.error(message_id, jsonrpc.INVALID_PARAMS, "Unsupported protocol version", data)


def negotiate(requested: object) -> str:
    """Return the version to answer `initialize` with: the one asked for if we speak it. Spec: §4.15"""
    return requested if isinstance(requested, str) and requested in _KNOWN else FALLBACK


def check_header(value: str | None, method: str | None) -> str | UnsupportedVersion:
    """Return the version that a request speaks by its `MCP-Protocol-Version` header.

    `method` is None for a batch. On `initialize` the header says nothing: the body negotiates.

    Spec: D109 · protocol.md A.3
    """
    if value is None or method == "initialize":
        return FALLBACK
    return value if value in _KNOWN else UnsupportedVersion(value)


def batches_allowed(version: str) -> bool:
    """True if a request that speaks `version` may be a batch. Spec: D107"""
    return version in _WITH_BATCHES
