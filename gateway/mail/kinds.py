"""Kinds of messages: subject, templates, purpose. Each app registers its own in `mail_kinds.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.utils.functional import Promise

Facts = Mapping[str, Any]


class Purpose(StrEnum):
    # Tells a person of a change that matters to security. It is always sent.
    SECURITY = "security"
    # Each message has a link that ends the kind for its address.
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class MailKind:
    """`name`: in rows, in links and of the templates `mail/<name>.txt` and `.html`; letters, digits and underscores.

    `subject`: a lazy translation; its placeholders are facts. `label`: the kind on the page where people choose.
    `facts_at_sending`: takes the stored facts and returns more, such as a secret link that is not stored; None when
    there is nothing to tell any more. `is_still_for`: takes address, organization and facts; False when the recipient
    has no right to the message any more, which may have waited for days. `is_per_organization`: a link ends it for the
    organization of the message.
    """

    name: str
    purpose: Purpose
    label: str | Promise
    subject: str | Promise
    facts_at_sending: Callable[[Facts], Facts | None] | None = None
    is_per_organization: bool = False
    is_still_for: Callable[[str, UUID | None, Facts], bool] | None = None

    @property
    def is_optional(self) -> bool:
        return self.purpose is Purpose.OPTIONAL


_kinds: dict[str, MailKind] = {}


def register(kind: MailKind) -> MailKind:
    """Raises: ValueError if another kind has the name."""
    if _kinds.setdefault(kind.name, kind) != kind:
        raise ValueError(f"Two kinds of messages are named {kind.name}.")
    return kind


def kind_named(name: str) -> MailKind | None:
    return _kinds.get(name)


def optional_kinds() -> list[MailKind]:
    """In the order of their names."""
    return [kind for _, kind in sorted(_kinds.items()) if kind.is_optional]
