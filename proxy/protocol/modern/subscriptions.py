"""Pure: the messages of `subscriptions/listen`: the part of the filter that is honoured, each change, the end.

Spec: MCP 2026-07-28, basic/patterns/subscriptions · docs/decisions/0102
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from proxy.protocol import jsonrpc
from proxy.protocol.jsonrpc import MessageId
from proxy.protocol.modern import results

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class _Filter(msgspec.Struct, rename="camel"):
    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


def wanted(notifications: object) -> frozenset[str] | None:
    """The lists whose changes these `params.notifications` ask for; None if they are malformed."""
    try:
        found = msgspec.convert(notifications, _Filter)
    except msgspec.ValidationError:
        return None
    asked = {
        "tools": found.tools_list_changed,
        "prompts": found.prompts_list_changed,
        "resources": found.resources_list_changed,
    }
    return frozenset(name for name, is_asked in asked.items() if is_asked)


def begun(message_id: MessageId, lists: Iterable[str]) -> bytes:
    """The acknowledgement of the `lists` whose changes will be told."""
    honoured = {f"{name}ListChanged": True for name in lists}
    return jsonrpc.notification(ACKNOWLEDGED, {"_meta": {SUBSCRIPTION_ID: message_id}, "notifications": honoured})


def notification(message_id: MessageId, method: str) -> bytes:
    """A change."""
    return jsonrpc.notification(method, {"_meta": {SUBSCRIPTION_ID: message_id}})


def ended(message_id: MessageId, server: Mapping[str, Any]) -> bytes:
    """The result, which ends the subscription."""
    return jsonrpc.result(message_id, results.complete({"_meta": {SUBSCRIPTION_ID: message_id}}, server))
