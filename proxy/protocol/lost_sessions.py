"""Pure: whether a vendor's 400 or 404 says that it does not know the session, and so has run nothing.

Spec: protocol.md A.6 · D104
"""

from enum import Enum
from typing import Final

from proxy.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND
from proxy.protocol.replies import VendorError

# Of the SDKs for TypeScript, Python, C# and Swift, and of servers that are made after their examples.
_UNKNOWN_SESSION: Final = frozenset(
    {
        "session not found",
        "no valid session id provided",
        "server not initialized",
        "invalid or expired session id",
        "session has been terminated",
    }
)
_STATUS_WORDS: Final = ("bad request: ", "not found: ")
_CODES: Final = frozenset({-32000, -32001, -32600})
_SEARCHED_BYTES: Final = 1_000


class SessionWord(Enum):
    """The state of a session, by the answer to a request that was sent on it."""

    KNOWN = "known"  # or nothing: something else is wrong
    DOUBTFUL = "doubtful"  # it may be unknown: only what changes nothing may be sent again
    UNKNOWN = "unknown"  # nothing was run


def session_word(status: int, body: bytes, error: VendorError | None) -> SessionWord:
    """The state of our session by an answer to a request with its id. `error` is the JSON-RPC error in `body`.

    The transport has 404 for a session that ended, and servers use 400 with words of their own. Those of a tool may
    speak of sessions too (a training session is full), after the tool ran: only the exact words are an answer.
    """
    if status not in (400, 404):
        return SessionWord.KNOWN
    if error is None:
        if status == 404:
            return SessionWord.UNKNOWN
        text = body[:_SEARCHED_BYTES].decode("utf-8", "replace")
        return SessionWord.DOUBTFUL if _may_mean_session(text) else SessionWord.KNOWN
    if _is_exact(error):
        return SessionWord.UNKNOWN
    is_of_session = _may_mean_session(error.message)
    if status == 404:
        is_of_session = is_of_session or error.code not in (METHOD_NOT_FOUND, INVALID_PARAMS)
    return SessionWord.DOUBTFUL if is_of_session else SessionWord.KNOWN


def _is_exact(error: VendorError) -> bool:
    """Whether the transport of a server speaks, which has not looked at the message: it names no request."""
    if isinstance(error.id, int) or error.code not in _CODES:
        return False
    words = error.message.strip().rstrip(".").lower()
    for each in _STATUS_WORDS:
        words = words.removeprefix(each)
    return words in _UNKNOWN_SESSION


def _may_mean_session(text: str) -> bool:
    lowered = text.lower()
    return "session" in lowered or "not initialized" in lowered
