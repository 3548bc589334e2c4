"""Changes of a service client: its name, its expiry, who is responsible for it, its list of tools."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypedDict
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.event_types import EventType
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.sentences import sentence
from gateway.lib.text import clean_name
from oauth_ext.models import Client
from oauth_ext.services.service_clients import locked_service_client, record_client_change
from orgs.models import Membership, User


class ServiceClientChanges(TypedDict, total=False):
    """A member that is missing stays as it is."""

    name: str
    expires_at: datetime
    responsible_user_id: UUID | None  # None: no person is responsible
    lists_compactly: bool  # three tools in place of all. docs/decisions/0116


# A field of the row by another name in the change.
_NAMES = {"responsible": "responsible_user_id", "lists_compactly": "compact_list"}


@transaction.atomic
def change_service_client(*, actor: User, client: Client, changes: ServiceClientChanges) -> Client:
    """An expired client works again until the new expiry. Spec: D70, D73

    Raises: Invalid with `fields`; NotFound for a deleted client; Forbidden.
    """
    found, org_id = locked_service_client(actor=actor, client=client)
    wanted, faults = _checked(org_id, changes)
    if faults:
        raise Invalid(fields=faults)
    before = {name: _shown(getattr(found, name)) for name in wanted}
    for name, value in wanted.items():
        setattr(found, name, value)
    facts = {}
    for name, value in wanted.items():
        if _shown(value) != before[name]:
            facts[_NAMES.get(name, name)], facts[f"former_{_NAMES.get(name, name)}"] = _shown(value), before[name]
    if facts:
        found.save(update_fields=list(wanted))
        record_client_change(EventType.SERVICE_CLIENT_UPDATED, org_id, actor, found, **facts)
    return found


def _checked(org_id: UUID, changes: ServiceClientChanges) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The new values by field of the row, and the faults by name of the change."""
    wanted: dict[str, Any] = {}
    faults: dict[str, list[str]] = {}
    if "name" in changes:
        try:
            wanted["name"] = clean_name(changes["name"])
        except ValueError as fault:
            faults["name"] = [str(fault)]
    if "expires_at" in changes:
        wanted["expires_at"], now = changes["expires_at"], clock.now()
        if not now < changes["expires_at"] <= now + timedelta(days=settings.SERVICE_CLIENT_MAX_DAYS):
            faults["expires_at"] = [
                sentence(
                    "Choose a time within the next %(service_client_max_days)s days.",
                    service_client_max_days=settings.SERVICE_CLIENT_MAX_DAYS,
                )
            ]
    if "lists_compactly" in changes:
        wanted["lists_compactly"] = changes["lists_compactly"]
    if "responsible_user_id" in changes:
        user_id = changes["responsible_user_id"]
        people = Membership.objects.select_related("user").filter(user__is_active=True, organization_id=org_id)
        wanted["responsible"] = None if user_id is None else people.filter(user_id=user_id).first()
        if user_id is not None and wanted["responsible"] is None:
            faults["responsible_user_id"] = [sentence("No active member has this ID.")]
    return wanted, faults


def _shown(value: str | bool | datetime | Membership | None) -> str | bool | None:
    """The value in the admin log."""
    if isinstance(value, datetime):
        return clock.rfc3339(value)
    return str(value.user_id) if isinstance(value, Membership) else value
