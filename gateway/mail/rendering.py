"""A message from its row: subject, plain text, HTML and headers, in the recipient's language."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.template import Context, Engine
from django.utils import translation

from gateway.mail.kinds import Facts, MailKind
from gateway.mail.models import OutgoingMail
from gateway.mail.opt_outs import unsubscribe_url
from gateway.mail.outbox import one_line, unlinked

SUBJECT_CHARACTERS = 150
# Engines of their own: the worker loads no template tags of pages, and plain text has nothing to escape.
_DIRS, _TAGS = [str(settings.BASE_DIR / "templates")], {"i18n": "django.templatetags.i18n"}
_TEXT = Engine(dirs=_DIRS, libraries=_TAGS, autoescape=False)
_HTML = Engine(dirs=_DIRS, libraries=_TAGS)


def message_of(
    mail: OutgoingMail, kind: MailKind, facts: Facts, connection: BaseEmailBackend | None = None
) -> EmailMultiAlternatives:
    """`facts`: the stored ones with those of the moment of sending."""
    with translation.override(mail.language or settings.LANGUAGE_CODE):
        subject = one_line(str(kind.subject) % facts, SUBJECT_CHARACTERS)
        context = _context(mail, kind, facts, subject)
        text = _rendered(_TEXT, f"mail/{kind.name}.txt", context).strip() + "\n"
        html = _rendered(_HTML, f"mail/{kind.name}.html", context)
    message = EmailMultiAlternatives(subject, text, to=[mail.address], headers=_headers(mail, context))
    message.connection = connection
    message.attach_alternative(html, "text/html")
    return message


def _rendered(engine: Engine, template: str, context: Facts) -> str:
    return engine.get_template(template).render(Context(dict(context), autoescape=engine.autoescape))


def _context(mail: OutgoingMail, kind: MailKind, facts: Facts, subject: str) -> dict[str, Any]:
    moments = {name: datetime.fromisoformat(value) for name, value in facts.items() if _is_moment(name, value)}
    link = unsubscribe_url(kind, mail.address, mail.organization_id) if kind.is_optional else ""
    # Anyone may write to anyone in this way, under names of their choice.
    names = {name: unlinked(value) for name, value in facts.items() if _is_name(name, value, mail)}
    return {
        **facts,
        **moments,
        **names,
        "base_url": settings.BASE_URL,
        "language": translation.get_language(),
        "subject": unlinked(subject),
        "address": mail.address,
        "unsubscribe_url": link,
    }


def _is_name(name: str, value: object, mail: OutgoingMail) -> bool:
    """Whether it is a stored text. A link, which is made at sending, and an address stay as they are."""
    is_stored = isinstance(value, str) and mail.facts.get(name) == value
    return is_stored and name != "email" and not _is_moment(name, value)


def _is_moment(name: str, value: object) -> bool:
    return name.endswith("_at") and isinstance(value, str)


def _headers(mail: OutgoingMail, context: dict[str, Any]) -> dict[str, str]:
    headers = {
        "Message-ID": f"<{mail.id.hex}@{settings.MAIL_HOST}>",
        # Absence notes do not answer it (RFC 3834).
        "Auto-Submitted": "auto-generated",
    }
    if link := context["unsubscribe_url"]:
        # One click in the mail program, without a visit (RFC 8058).
        headers |= {"List-Unsubscribe": f"<{link}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    return headers
