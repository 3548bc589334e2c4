"""Pure: `subscriptions/listen`. The gateway announces no change, so each subscription ends at once, and says so.

Spec: MCP 2026-07-28, basic/patterns/subscriptions · docs/decisions/0102
"""

from collections.abc import Mapping
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


def is_filter(notifications: object) -> bool:
    """Whether these `params.notifications` are well-formed."""
    try:
        msgspec.convert(notifications, _Filter)
    except msgspec.ValidationError:
        return False
    return True


def messages(message_id: MessageId, server: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The acknowledgement, which honours nothing of the filter, and the result, which ends the subscription."""
    own = {SUBSCRIPTION_ID: message_id}
    begun = jsonrpc.notification(ACKNOWLEDGED, {"_meta": own, "notifications": {}})
    return begun, jsonrpc.result(message_id, results.complete({"_meta": own}, server))
