from __future__ import annotations

from django.db import transaction

from gateway.lib.errors import Invalid
from gateway.lib.text import clean_name
from orgs.models import User

# The columns that a person may set.
_NAMES = ("first_name", "last_name", "display_name")


@transaction.atomic
def update_profile(*, user: User, **names: str) -> User:
    """Store the given names; an empty one clears the name. Raises: Invalid with `fields`. Spec: §4.3 · D46"""
    faults: dict[str, list[str]] = {}
    given = [field for field in _NAMES if field in names]
    for field in given:
        try:
            setattr(user, field, clean_name(names[field], allow_empty=True))
        except ValueError as fault:
            faults[field] = [str(fault)]
    if faults:
        raise Invalid(fields=faults)
    # Only these columns: the others may have changed since the row was read.
    user.save(update_fields=given)
    return user
