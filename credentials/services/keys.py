"""Named keys: rename, bind to a team, unbind. New content needs a new key."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from audit.event_types import EventType
from credentials.credential_scope import CredentialScope
from credentials.errors import KeyNameTaken, TeamHasKey
from credentials.models import Credential
from credentials.services.credentials import record
from gateway.lib import clock
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.rows import required_row
from gateway.lib.text import clean_name
from orgs.locking import lock_for_change
from orgs.models import Organization, Team, User
from orgs.roles import Role


@transaction.atomic
def update_named_key(
    *, actor: User, organization: Organization, key_id: UUID, vendor: str, name: str, team_id: UUID | None
) -> Credential:
    """Raises: NotFound, Forbidden, Invalid, KeyNameTaken, TeamHasKey. Spec: §4.6 · D65"""
    try:
        cleaned = clean_name(name)
    except ValueError as fault:
        raise Invalid(fields={"name": [str(fault)]}) from fault
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    keys = Credential.objects.filter(organization=organization, vendor=vendor, scope=CredentialScope.NAMED_KEY.value)
    key = required_row(keys.defer("sealed").filter(pk=key_id))
    # Checked before the write so that the error names the conflict.
    others = keys.exclude(pk=key_id)
    if others.filter(name=cleaned).exists():
        raise KeyNameTaken
    if team_id is not None:
        # The lock keeps the team from being deleted before this transaction ends.
        teams = Team.objects.select_for_update(no_key=True).filter(pk=team_id, organization=organization)
        if teams.values_list("pk").first() is None:
            raise NotFound
        if others.filter(team_id=team_id).exists():
            raise TeamHasKey
    former = {"formerName": key.name, "formerTeamId": str(key.team_id) if key.team_id else None}
    # `team_id` None unbinds the key.
    key.name, key.team_id, key.updated_at = cleaned, team_id, clock.now()
    key.save(update_fields=["name", "team_id", "updated_at"])
    record(EventType.CREDENTIAL_KEY_UPDATED, actor, key, **former)
    return key
