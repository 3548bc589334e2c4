"""Pure: the error that asks the person behind a call to open a page, in the earlier revisions.

Spec: MCP 2025-11-25, client/elicitation, URL Elicitation Required Error · docs/decisions/0108
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from proxy.protocol import jsonrpc, questions

REQUIRED: Final = -32042
COMPLETE: Final = "notifications/elicitation/complete"
MAX_PAGES: Final = 10  # of a vendor's error
MAX_ERROR_BYTES: Final = 64 * 1024


class _Data(msgspec.Struct):
    elicitations: list[dict[str, Raw]]


class _Error(msgspec.Struct):
    code: int
    message: str
    data: _Data


class _Page(msgspec.Struct, rename="camel"):
    mode: str
    url: str
    message: str
    elicitation_id: str


_errors = msgspec.json.Decoder(_Error)
_pages = msgspec.json.Decoder(_Page)
_encode = msgspec.json.Encoder().encode


def pages_to_open(elicitation_id: str, message: str, url: str) -> dict[str, Any]:
    """The data of the error. The client shows the message, and repeats its request when the person has been there."""
    return {"elicitations": [{"mode": "url", "elicitationId": elicitation_id, "url": url, "message": message}]}


def checked(raw_error: bytes) -> bytes | None:
    """A vendor's error with the members of the specification, its texts without hidden characters; None if it cannot be
    read or an address may mislead."""
    if len(raw_error) > MAX_ERROR_BYTES:
        return None
    try:
        error = _errors.decode(raw_error)
        asked = error.data.elicitations
        shown = [questions.for_a_person(each) for each in asked]
        pages = [_pages.decode(_encode(each)) for each in shown if each is not None]
    except (msgspec.DecodeError, RecursionError):
        return None
    if not 0 < len(asked) <= MAX_PAGES or len(pages) < len(asked) or any(page.mode != "url" for page in pages):
        return None
    return _encode({"code": REQUIRED, "message": error.message, "data": {"elicitations": pages}})


def refused(message: str) -> bytes:
    """The error in place of one that the caller may not have."""
    data = {"reason": "vendor_error", "code": REQUIRED}
    text = f"The vendor asks its user to open a page, which is not possible here: {message}"
    return _encode({"code": jsonrpc.INTERNAL_ERROR, "message": text, "data": data})
