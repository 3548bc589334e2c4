"""Operators' services: find a person, give and take support access."""

from __future__ import annotations

import structlog
from django.contrib.auth.models import Permission
from django.db import transaction

from gateway.lib import ids
from gateway.lib.errors import Conflict, NotFound
from orgs.errors import DeactivatedPerson
from orgs.locking import lock_active_person
from orgs.models import User
from orgs.services.identities import people_with_email, person_with_email

log = structlog.get_logger(__name__)


def find_person(named: str) -> User:
    """By e-mail address or id, active or not. Raises: NotFound; Conflict if several have the address."""
    key = ids.parse_id(named)
    if key is not None:
        found = User.objects.filter(pk=key).first()
        if found is None:
            raise NotFound(f"There is no one with the id {named}.")
        return found
    people = people_with_email(named)
    if not people:
        raise NotFound(f"There is no one with the address {named}.")
    if len(people) > 1:
        choices = ", ".join(f"{row.pk} ({row.name}, {'active' if row.is_active else 'deactivated'})" for row in people)
        raise Conflict(f"Several people have the address {named}. Name one by id: {choices}.")
    return people[0]


def person_named(named: str) -> User:
    """By id, or by e-mail address and then created if missing. Raises: NotFound; and as `person_with_email`."""
    if ids.parse_id(named) is None:
        return person_with_email(named)
    found = find_person(named)
    if not found.is_active:
        raise DeactivatedPerson(found.email, [found.pk])
    return found


@transaction.atomic
def make_staff(named: str, *, view_only: bool = False, without_tables: bool = False) -> User:
    """Open /admin to the person of an id or address, created if missing.

    Raises: Invalid; NotFound; Conflict, also for a deactivated person.

    `view_only`: to read in the support console. `without_tables`: to read and act there, and to post incidents.
    Neither: a superuser, who sees the tables too.
    """
    # An unverified address matches no person: anyone can claim it.
    person = lock_active_person(person_named(named))
    codenames = ["view_organization", "view_incident"]
    if not view_only:
        codenames += ["change_organization", "add_incident", "change_incident"]
    is_superuser = not (view_only or without_tables)
    person.is_staff, person.is_superuser = True, is_superuser
    person.save(update_fields=["is_staff", "is_superuser"])
    rights = Permission.objects.filter(content_type__app_label__in=("orgs", "status"), codename__in=codenames)
    person.user_permissions.set([] if is_superuser else rights)
    log.info("support access given", user_id=str(person.pk), view_only=view_only, superuser=is_superuser)
    return person


@transaction.atomic
def revoke_staff(person: User) -> bool:
    """Close /admin to the person from the next request on; return whether it was open."""
    held = User.objects.select_for_update().get(pk=person.pk)
    had = held.is_staff or held.is_superuser
    held.is_staff = held.is_superuser = False
    held.save(update_fields=["is_staff", "is_superuser"])
    held.user_permissions.clear()
    held.groups.clear()
    log.info("support access taken", user_id=str(held.pk))
    return had
