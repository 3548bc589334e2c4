"""Pure: whether a vendor's 400 or 404 says that the session is unknown. Spec: protocol.md A.6 · D104"""

from enum import Enum
from typing import Final

from proxy.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND
from proxy.protocol.replies import RpcError

# Messages of the SDKs for TypeScript, Python, C# and Swift, and of servers based on their examples.
_UNKNOWN_SESSION: Final = frozenset(
    {
        "session not found",
        "no valid session id provided",
        "server not initialized",
        "invalid or expired session id",
        "session has been terminated",
    }
)
_STATUS_PREFIXES: Final = ("bad request: ", "not found: ")
_CODES: Final = frozenset({-32000, -32001, -32600})
_SEARCHED_BYTES: Final = 1_000  # of a body that is no JSON-RPC error


class SessionState(Enum):
    """The state of a session, from an answer."""

    KNOWN = "known"  # or no statement: another error
    UNCERTAIN = "doubtful"  # perhaps unknown: only read-only requests may be retried
    UNKNOWN = "unknown"  # nothing was run


def session_state(status: int, body: bytes, error: RpcError | None) -> SessionState:
    """`error` is the JSON-RPC error in `body`."""
    if status not in (400, 404):
        return SessionState.KNOWN
    if error is None:
        if status == 404:
            return SessionState.UNKNOWN
        # MCP answers 404 for a session that ended; some servers use 400 and a text.
        text = body[:_SEARCHED_BYTES].decode("utf-8", "replace")
        return SessionState.UNCERTAIN if _may_mean_session(text) else SessionState.KNOWN
    # A tool may mention sessions too ("the training session is full"), after it ran. Only exact texts count.
    if _is_exact(error):
        return SessionState.UNKNOWN
    is_of_session = _may_mean_session(error.message)
    if status == 404:
        is_of_session = is_of_session or error.code not in (METHOD_NOT_FOUND, INVALID_PARAMS)
    return SessionState.UNCERTAIN if is_of_session else SessionState.KNOWN


def _is_exact(error: RpcError) -> bool:
    # An error with the request's id comes from the method, not from the transport.
    if isinstance(error.id, int) or error.code not in _CODES:
        return False
    text_lower = error.message.strip().rstrip(".").lower()
    for each in _STATUS_PREFIXES:
        text_lower = text_lower.removeprefix(each)
    return text_lower in _UNKNOWN_SESSION


def _may_mean_session(text: str) -> bool:
    lowered = text.lower()
    return "session" in lowered or "not initialized" in lowered
