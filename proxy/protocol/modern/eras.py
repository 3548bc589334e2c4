"""Pure: the revision that a vendor speaks, from its answer to `server/discover` and from its refusals of calls.

Spec: MCP 2026-07-28, basic/versioning, Version Negotiation · docs/decisions/0106
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from proxy.protocol import jsonrpc
from proxy.protocol.lost_sessions import SessionState, session_state
from proxy.protocol.modern.errors import HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION
from proxy.protocol.modern.revision import SERVED
from proxy.protocol.replies import RpcError, VendorMessage, VendorResult

_SPOKEN: Final = frozenset(SERVED)
_MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
# These refuse a request before anything ran.
_BEFORE_PROCESSING: Final = frozenset({HEADER_MISMATCH, UNSUPPORTED_VERSION})
# How the transports of the earlier SDKs begin a refusal of a version, and of a request without a session.
_OF_EARLIER_TRANSPORTS: Final = ("unsupported protocol version", "missing session id")
_TRANSPORT_CODES: Final = frozenset({-32000, jsonrpc.INVALID_REQUEST})


class Era(Enum):
    """The meaning of an answer to `server/discover`."""

    MODERN = "modern"
    EARLIER = "earlier"
    UNKNOWN = "unknown"  # about the way, the credentials or the moment, not about the revision


class _Discovered(msgspec.Struct, rename="camel"):
    supported_versions: list[str]


class _VersionData(msgspec.Struct):
    supported: list[str] = []
    requested: str = ""


class _VersionError(msgspec.Struct):
    data: _VersionData = msgspec.field(default_factory=_VersionData)


_discovered = msgspec.json.Decoder(_Discovered)
_version_errors = msgspec.json.Decoder(_VersionError)


def of_status(status: int) -> Era | None:
    """The meaning of the HTTP status alone; None if it depends on the body."""
    if status in (200, 400, 404):
        return None
    is_of_the_revision = 400 <= status < 500 and status not in (401, 403, 407, 408, 425, 429)
    return Era.EARLIER if is_of_the_revision else Era.UNKNOWN


def of_answer(status: int, answer: VendorMessage | None) -> Era:
    """For the statuses that `of_status` leaves open. `answer`: None for anything but a JSON-RPC message."""
    if isinstance(answer, VendorResult) and status == 200:
        return Era.MODERN if not _SPOKEN.isdisjoint(supported_versions(answer.raw_result)) else Era.EARLIER
    if isinstance(answer, RpcError) and status == 400 and answer.code in _MODERN_CODES:
        is_spoken = answer.code != UNSUPPORTED_VERSION or not _SPOKEN.isdisjoint(_version_data(answer).supported)
        return Era.MODERN if is_spoken else Era.EARLIER
    return Era.EARLIER


def supported_versions(raw_result: bytes) -> list[str]:
    """The versions in a result of `server/discover`; [] if it is none."""
    try:
        return _discovered.decode(raw_result).supported_versions
    except (msgspec.DecodeError, RecursionError):
        return []


def refuses_earlier(status: int, error: RpcError | None) -> bool:
    """Whether a vendor of the modern revision refused an earlier request, before anything ran.

    An error of the same code with another status may come from what the tool asked.
    """
    if error is None or status != 400 or error.code not in _BEFORE_PROCESSING:
        return False
    supported = _version_data(error).supported
    return error.code == HEADER_MISMATCH or not supported or not _SPOKEN.isdisjoint(supported)


def refuses_modern(status: int, body: bytes, error: RpcError | None) -> bool:
    """Whether a modern request was refused, before anything ran, by a vendor that does not speak the revision."""
    if error is None or status not in (400, 404):
        return False
    data = _version_data(error)
    names_ours = data.requested in _SPOKEN and bool(data.supported) and _SPOKEN.isdisjoint(data.supported)
    if status == 400 and error.code in (UNSUPPORTED_VERSION, jsonrpc.INVALID_PARAMS) and names_ours:
        return True
    if isinstance(error.id, int) or error.code not in _TRANSPORT_CODES:  # the method's own error has the request's id
        return False
    text = error.message.strip().lower().removeprefix("bad request: ")
    if status == 400 and text.startswith(_OF_EARLIER_TRANSPORTS):
        return True
    return session_state(status, body, error) is SessionState.UNKNOWN


def casts_doubt(status: int, error: RpcError | None) -> bool:
    """Whether a modern session had better ask again: the vendor may speak another revision by now."""
    return error is None or error.code == jsonrpc.METHOD_NOT_FOUND or (status == 400 and not isinstance(error.id, int))


def _version_data(error: RpcError) -> _VersionData:
    try:
        return _version_errors.decode(error.raw_error).data
    except (msgspec.DecodeError, RecursionError):
        return _VersionData()
