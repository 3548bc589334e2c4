"""Messages are queued in the transaction of what they tell: a change that is undone sends none, and none is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from gateway.lib import clock
from gateway.lib.hidden_text import replace_hidden
from gateway.lib.masking import mask_text
from gateway.mail.kinds import Facts, MailKind
from gateway.mail.models import OutgoingMail

FACT_CHARACTERS = 500
# Inside a word: what mail programs make links of.
_LINK_SIGNS = re.compile(r"(?<=\S)[./:](?=\S)")
_NO_LINK = "\u200b"


@dataclass(frozen=True, slots=True)
class Recipient:
    """`address`: one that is known to be the person's, or that the sender typed. `language`: empty for the default."""

    address: str
    language: str = ""


def is_on() -> bool:
    """Whether messages are written at all. Spec: D167"""
    return bool(settings.MAIL_DELIVERY != "off")


def queue_mail(
    kind: MailKind,
    recipients: Iterable[Recipient],
    *,
    organization_id: UUID | None,
    facts: Facts,
    about: UUID | None = None,
) -> list[OutgoingMail]:
    """One row for each recipient, each address once. Without a mail server none, and an empty list.

    `facts`: texts, numbers, moments (`…_at`) and lists of texts, of which none is a secret. Raises: django.db.Error.
    """
    return queue_all(mails_for(kind, recipients, organization_id=organization_id, facts=facts, about=about))


def queue_all(mails: Iterable[OutgoingMail]) -> list[OutgoingMail]:
    """Messages of `mails_for`, in one statement. Without a mail server none, and an empty list."""
    return OutgoingMail.objects.bulk_create(mails) if is_on() else []


def mails_for(
    kind: MailKind,
    recipients: Iterable[Recipient],
    *,
    organization_id: UUID | None,
    facts: Facts,
    about: UUID | None = None,
) -> list[OutgoingMail]:
    """The rows of `queue_mail`, not stored yet."""
    stored = {name: _stored(value) for name, value in facts.items()}
    once = {each.address.lower(): each for each in recipients if each.address}
    return [
        OutgoingMail(
            organization_id=organization_id,
            kind=kind.name,
            is_urgent=not kind.is_optional,
            address=each.address,
            language=each.language,
            facts=stored,
            about=about,
        )
        for each in once.values()
    ]


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return clock.rfc3339(value)
    if isinstance(value, str):
        return one_line(mask_text(str(value)))
    if isinstance(value, list | tuple):
        return [_stored(each) for each in value]
    return value


def one_line(text: str, characters: int = FACT_CHARACTERS) -> str:
    """The text without line ends and hidden characters: a fact cannot begin a header or a line of its own."""
    seen, _ = replace_hidden(text, lambda hidden: " " if hidden == "\r" else "")
    return " ".join(seen.split())[:characters]


def unlinked(name: str) -> str:
    """A stranger's name as it may stand in a message: no mail program makes a link of `https://x.example` in it."""
    return _LINK_SIGNS.sub(rf"\g<0>{_NO_LINK}", name)
