"""Pure: an event as a line of text and a level, for platforms that show both."""

from __future__ import annotations

from typing import Final

from audit.call_status import CallKind, CallStatus
from audit.shipping.events import Event

INFO: Final = "info"
WARN: Final = "warn"
ERROR: Final = "error"
_LEVELS: Final = {CallStatus.DENIED: WARN, CallStatus.UNKNOWN: WARN, CallStatus.ERROR: ERROR}


def level_of(event: Event) -> str:
    """A successful call and every change are INFO."""
    return _LEVELS.get(event.fields.get("status", ""), INFO)


def line_of(event: Event) -> str:
    field = event.fields.get
    if event.is_tool_call:
        result = " ".join(filter(None, (field("status"), field("errorCode"))))
        who = field("userLabel") or field("userId")
        if field("kind", CallKind.TOOL) != CallKind.TOOL:
            return f"{who} asked for the {field('kind')} {field('item')} of {field('vendor')}: {result}"
        return f"{who} called {field('tool')} of {field('vendor')}: {result}"
    line = f"{field('eventType')} by {field('actorLabel') or field('actorId') or 'the gateway'}"
    target = field("targetLabel") or field("targetId")
    return f"{line}: {target}" if target else line
