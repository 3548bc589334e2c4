"""The person's choices about e-mail: the language, and which optional messages. Links in messages do the same."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from gateway.lib.errors import Conflict, Invalid
from gateway.lib.sentences import sentence
from gateway.mail.kinds import MailKind, optional_kinds
from gateway.mail.opt_outs import choose, unwanted_kinds
from orgs.locking import lock_active_person
from orgs.models import User


def mail_choices(user: User) -> list[tuple[MailKind, bool]]:
    """Each optional kind, and whether the person's address gets it."""
    unwanted = unwanted_kinds(user.email)
    return [(kind, kind.name not in unwanted) for kind in optional_kinds()]


@transaction.atomic
def choose_mail(*, user: User, language: str, wanted: Sequence[str]) -> None:
    """`language`: a code of LANGUAGES, or empty for the default. `wanted`: names of kinds.

    Raises: Invalid; Conflict without a verified address: anybody may have claimed it; DeactivatedPerson.
    """
    if language and language not in dict(settings.LANGUAGES):
        raise Invalid(fields={"language": [sentence("Choose a language from the list.")]})
    if set(wanted) - {kind.name for kind in optional_kinds()}:
        raise Invalid(fields={"wanted": [sentence("Choose messages from the list.")]})
    person = lock_active_person(user)
    if not person.email_verified:
        raise Conflict(sentence("Your identity provider hasn’t verified your address."))
    person.language = language
    person.save(update_fields=["language"])
    choose(person.email, wanted)
