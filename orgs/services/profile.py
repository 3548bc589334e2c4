"""A person's own names."""

from __future__ import annotations

from django.db import transaction

from gateway.lib.errors import Invalid
from gateway.lib.text import clean_name
from orgs.models import User

_NAMES = ("first_name", "last_name", "display_name")


@transaction.atomic
def update_profile(*, user: User, **names: str) -> User:
    """The given names (first_name, last_name, display_name) are stored; empty ones are cleared.

    Raises: Invalid with `fields`.   Spec: §4.3 · D46
    """
    faults: dict[str, list[str]] = {}
    given = [field for field in _NAMES if field in names]
    for field in given:
        try:
            setattr(user, field, clean_name(names[field], allow_empty=True))
        except ValueError as fault:
            faults[field] = [str(fault)]
    if faults:
        raise Invalid(fields=faults)
    user.save(update_fields=given)  # no others: they may have changed since this person was read
    return user
