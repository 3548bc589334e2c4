"""Organizations: create, rename, change settings, delete."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.shipping.destinations import delete_all_of as delete_all_destinations_of
from gateway.coordination import epochs
from gateway.lib.errors import Invalid
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.lib.text import checked_name
from orgs import events
from orgs.errors import OrganizationLimit
from orgs.locking import current_membership, lock_for_change
from orgs.models import Membership, Organization, User
from orgs.roles import Role
from orgs.services.open_requests import end_answered_requests


@transaction.atomic
def create_organization(*, actor: User, name: str) -> Organization:
    """The actor becomes owner. Raises: Invalid, OrganizationLimit. Spec: §4.4 · D32, D36"""
    cleaned = checked_name(name)
    # The lock makes parallel creations count one after the other.
    User.objects.select_for_update().get(pk=actor.pk)
    owned = Membership.objects.filter(user=actor, role=Role.OWNER.value).count()
    if owned >= settings.ORGANIZATIONS_PER_PERSON:
        raise OrganizationLimit
    organization = Organization.objects.create(name=cleaned)
    Membership.objects.create(organization=organization, user=actor, role=Role.OWNER.value)
    record_admin(
        EventType.ORGANIZATION_CREATED,
        org_id=organization.id,
        actor=actor.as_actor(),
        target=organization.as_target(),
    )
    epochs.bump_on_commit(epochs.subject(str(actor.id)))
    return organization


@transaction.atomic
def rename_organization(*, actor: User, organization: Organization, name: str) -> Organization:
    """Raises: Invalid, NotFound, Forbidden. Spec: §4.4 · D38"""
    cleaned = checked_name(name)
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    former, locked.name = locked.name, cleaned
    locked.save(update_fields=["name"])
    return _changed(EventType.ORGANIZATION_UPDATED, actor, locked, formerName=former)


@transaction.atomic
def update_settings(*, actor: User, organization: Organization, default_server_access: str) -> Organization:
    """`default_server_access`: all or none. Raises: Invalid, NotFound, Forbidden. Spec: §4.4 · D38"""
    if default_server_access not in Organization.DefaultServerAccess.values:
        raise Invalid(fields={"defaultServerAccess": [sentence("Must be none or all.")]})
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    former, locked.default_server_access = locked.default_server_access, default_server_access
    locked.save(update_fields=["default_server_access"])
    end_answered_requests(locked.id)
    facts = {"defaultServerAccess": default_server_access, "was": former}
    return _changed(EventType.ORGANIZATION_SETTINGS_UPDATED, actor, locked, **facts)


@transaction.atomic
def delete_organization(*, actor: User, organization: Organization) -> None:
    """Delete all its rows except audit rows. Raises: NotFound, Forbidden. Spec: §4.4 · D37, D139"""
    # The stronger lock: no row that refers to the organization can be inserted any more.
    locked = required_row(Organization.objects.select_for_update().filter(pk=organization.pk))
    current_membership(locked, actor, role=Role.OWNER)
    _delete(locked, actor.as_actor())


@transaction.atomic
def delete_organization_again(*, actor: Actor, org_id: UUID) -> bool:
    """Delete an organization that a restored database brought back; return whether it was there."""
    locked = Organization.objects.select_for_update().filter(pk=org_id).first()
    if locked is None:
        return False
    _delete(locked, actor)
    return True


def _delete(locked: Organization, actor: Actor) -> None:
    members = list(Membership.objects.filter(organization=locked).values_list("user_id", flat=True))
    # Before the rows: receivers destroy the data keys.
    events.organization_deleting.send(sender=Organization, organization=locked)
    delete_all_destinations_of(locked.id)
    record_admin(
        EventType.ORGANIZATION_DELETED,
        org_id=locked.id,
        actor=actor,
        target=locked.as_target(),
        metadata={"members": len(members)},
    )
    epochs.bump_on_commit(epochs.organization(locked.id), *(epochs.subject(str(user_id)) for user_id in members))
    locked.delete()


def _changed(event: EventType, actor: User, organization: Organization, **facts: str) -> Organization:
    record_admin(event, org_id=organization.id, actor=actor.as_actor(), target=organization.as_target(), metadata=facts)
    epochs.bump_on_commit(epochs.organization(organization.id))
    return organization
