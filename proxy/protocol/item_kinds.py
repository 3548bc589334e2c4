"""Pure: the lists of a vendor beside its tools, and the requests for one entry of them.

Spec: MCP 2025-11-25 and 2026-07-28, server/resources, server/prompts, server/utilities/completion
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final


class Capability(StrEnum):
    """A member of a vendor's capabilities, beside tools."""

    RESOURCES = "resources"
    PROMPTS = "prompts"
    COMPLETIONS = "completions"
    UPDATES = "resources.subscribe"  # changes of a resource are announced


class ItemKind(Enum):
    """A list: the method that asks for it, the result's member, the entry's member that names it."""

    RESOURCE = ("resources/list", "resources", "uri", Capability.RESOURCES)
    TEMPLATE = ("resources/templates/list", "resourceTemplates", "uriTemplate", Capability.RESOURCES)
    PROMPT = ("prompts/list", "prompts", "name", Capability.PROMPTS)

    def __init__(self, method: str, member: str, named_by: str, capability: Capability) -> None:
        self.method, self.member, self.named_by, self.capability = method, member, named_by, capability


LISTS: Final = {kind.method: kind for kind in ItemKind}
READ, GET, COMPLETE = "resources/read", "prompts/get", "completion/complete"
SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
UPDATED: Final = "notifications/resources/updated"
SUBSCRIPTIONS: Final = frozenset((SUBSCRIBE, UNSUBSCRIBE))
CALLS: Final = frozenset((READ, GET, COMPLETE))
CAPABILITIES: Final = frozenset(Capability)
