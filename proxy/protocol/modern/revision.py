"""Pure: which messages are of the modern revision. The body decides; headers are checked against it. Spec: D159"""

from collections.abc import Iterable
from typing import Any, Final

from proxy.protocol import versions
from proxy.protocol.jsonrpc import Message, Notification, Request

SERVED: Final = ("2026-07-28",)
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"

_SERVED: Final = frozenset(SERVED)
_EARLIER: Final = frozenset(versions.NEWEST_FIRST)
_WITH_PARAMS: Final = (Request, Notification)


def is_modern(message: Message, header: str | None) -> bool:
    """`header`: the value of MCP-Protocol-Version.

    A version in the body that is none of the earlier ones makes the message modern, whatever the header says: it is
    served, or refused in the modern way. A body without one is modern by its header.
    """
    if isinstance(message, _WITH_PARAMS):
        if _claims_modern(message.params):
            return True
        if message.method == "initialize":  # there the body negotiates. Spec: D109
            return False
    return header in _SERVED


def is_modern_body(body: object, header: str | None) -> bool:
    """Whether a body that is no single message, or was not readable, gets its refusal in the modern way."""
    return header in _SERVED or (isinstance(body, list) and _any_modern(body))


def _any_modern(entries: Iterable[object]) -> bool:
    return any(type(each) is dict and _claims_modern(each.get("params")) for each in entries)


def _claims_modern(params: Any) -> bool:
    meta = params.get("_meta") if type(params) is dict else None
    if type(meta) is not dict or PROTOCOL_VERSION not in meta:
        return False
    claimed = meta[PROTOCOL_VERSION]
    return type(claimed) is not str or claimed not in _EARLIER
