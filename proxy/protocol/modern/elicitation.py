"""Pure: asks the person behind a call to open a page, where the client can do that.

Spec: MCP 2026-07-28, client/elicitation, URL mode · basic/patterns/mrtr
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# Of the one request in an answer.
KEY: Final = "connect"


def can_open_pages(capabilities: Mapping[str, Any]) -> bool:
    """Whether the client has declared it. Without `url` a client shows forms only."""
    declared = capabilities.get("elicitation")
    return isinstance(declared, dict) and isinstance(declared.get("url"), dict)


def was_asked(params: Mapping[str, Any]) -> bool:
    """Whether the call is a repetition after such an answer, whatever the person chose."""
    answered = params.get("inputResponses")
    return isinstance(answered, dict) and KEY in answered


def page_to_open(message: str, url: str) -> dict[str, Any]:
    """The members of the answer. It needs no state: the repeated call is decided anew."""
    params = {"mode": "url", "message": message, "url": url}
    return {"inputRequests": {KEY: {"method": "elicitation/create", "params": params}}}
