"""Pure: the messages of `subscriptions/listen`: the part of the filter that is honoured, each change, the end.

Spec: MCP 2026-07-28, basic/patterns/subscriptions · docs/decisions/0102
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from proxy.protocol import jsonrpc
from proxy.protocol.jsonrpc import MessageId
from proxy.protocol.modern import results

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class _Filter(msgspec.Struct, rename="camel"):
    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


def wanted(notifications: object) -> tuple[frozenset[str], list[str]] | None:
    """The lists, and the addresses of resources, whose changes these `params.notifications` ask for; None if they are
    malformed."""
    try:
        found = msgspec.convert(notifications, _Filter)
    except msgspec.ValidationError:
        return None
    asked = {
        "tools": found.tools_list_changed,
        "prompts": found.prompts_list_changed,
        "resources": found.resources_list_changed,
    }
    return frozenset(name for name, is_asked in asked.items() if is_asked), found.resource_subscriptions


def begun(message_id: MessageId, lists: Iterable[str], addresses: Sequence[str] = ()) -> bytes:
    """The acknowledgement of what will be told: changes of these lists and resources."""
    honoured: dict[str, object] = {f"{name}ListChanged": True for name in lists}
    if addresses:
        honoured["resourceSubscriptions"] = list(addresses)
    return jsonrpc.notification(ACKNOWLEDGED, {"_meta": {SUBSCRIPTION_ID: message_id}, "notifications": honoured})


def notification(message_id: MessageId, method: str, **params: str) -> bytes:
    """A change."""
    return jsonrpc.notification(method, {"_meta": {SUBSCRIPTION_ID: message_id}, **params})


def ended(message_id: MessageId, server: Mapping[str, Any]) -> bytes:
    """The result, which ends the subscription."""
    return jsonrpc.result(message_id, results.complete({"_meta": {SUBSCRIPTION_ID: message_id}}, server))
