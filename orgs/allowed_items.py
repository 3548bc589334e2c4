"""Pure: lists of allowed resources and prompts. docs/decisions/0115"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.lib import uri_templates


class ItemType(StrEnum):
    """The things that such a list allows, beside tools."""

    RESOURCES = "resources"
    PROMPTS = "prompts"


ITEM_TYPE_CHOICES = [(each.value, each.value) for each in ItemType]


@dataclass(frozen=True, slots=True)
class AllowedItems:
    """Exact names or addresses, as the vendor has them; `templates`: those of addresses among them."""

    entries: frozenset[str]
    templates: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: str, entries: Iterable[str]) -> AllowedItems:
        exact = frozenset(entries)
        has_templates = kind == ItemType.RESOURCES
        return cls(exact, tuple(sorted(filter(uri_templates.is_template, exact))) if has_templates else ())

    def allows(self, own: str) -> bool:
        """`own`: as the vendor has it; of a template the template itself."""
        return own in self.entries or any(uri_templates.is_made_of(each, own) for each in self.templates)


# By vendor, role and type; a service client's by vendor and type.
ItemLists = Mapping[tuple[str, str, str], AllowedItems]
OwnItemLists = Mapping[tuple[str, str], AllowedItems]
