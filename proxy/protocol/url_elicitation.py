"""Pure: the error that asks the person behind a call to open a page, in the earlier revisions.

Spec: MCP 2025-11-25, client/elicitation, URL Elicitation Required Error · docs/decisions/0108
"""

from __future__ import annotations

from typing import Any, Final

REQUIRED: Final = -32042
COMPLETE: Final = "notifications/elicitation/complete"


def pages_to_open(elicitation_id: str, message: str, url: str) -> dict[str, Any]:
    """The data of the error. The client shows the message, and repeats its request when the person has been there."""
    return {"elicitations": [{"mode": "url", "elicitationId": elicitation_id, "url": url, "message": message}]}
