from __future__ import annotations

from django.db import transaction

from gateway.coordination import epochs
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
    # Logs of calls name the person as the caller's rows do.
    epochs.bump_on_commit(epochs.subject(str(user.id)))
    return user
