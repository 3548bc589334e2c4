"""Access requests: create, approve, decline, withdraw. Each is decided once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.catalog import registry
from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.lib.text import clean_name
from orgs.errors import AccessRequestDecided, AccessRequestOpen, HasAccess, VendorNotConnected
from orgs.locking import current_membership, lock_for_change
from orgs.models import AccessRequest, Organization, User
from orgs.models.access_request import REASON_MAX_CHARACTERS
from orgs.roles import Role
from orgs.server_access_reasons import effective_server_access
from orgs.services.server_access import add_member_vendor
from orgs.services.server_access_ends import checked_end


@transaction.atomic
def create_request(
    *,
    actor: User,
    organization: Organization,
    vendor: str,
    reason: str = "",
    connected_vendors: Callable[[], Collection[str]],
) -> AccessRequest:
    """Ask for the actor's own access. `connected_vendors` is asked under the organization's lock. Spec: D169

    Raises: NotFound for an unknown vendor; VendorNotConnected, HasAccess, AccessRequestOpen; Invalid.
    """
    cleaned = _text("reason", reason)
    known = registry.known_vendor(vendor)
    locked = lock_for_change(organization, actor=actor, role=Role.MEMBER)
    membership = current_membership(locked, actor, role=Role.MEMBER)
    if vendor not in connected_vendors():
        raise VendorNotConnected(sentence("%(known)s is not connected.", known=known.name))
    if any(each.vendor == vendor for each in effective_server_access(membership, [vendor])):
        raise HasAccess(sentence("You already have access to %(known)s.", known=known.name))
    earlier = AccessRequest.objects.filter(membership=membership, vendor=vendor)
    if earlier.filter(state=AccessRequest.State.WAITING).exists():
        raise AccessRequestOpen(sentence("You’ve already asked for %(known)s.", known=known.name))
    earlier.delete()
    row = AccessRequest.objects.create(organization=locked, membership=membership, vendor=vendor, reason=cleaned)
    _record(EventType.ACCESS_REQUEST_CREATED, actor, row)
    return row


@transaction.atomic
def approve_request(
    *, actor: User, organization: Organization, request_id: UUID, expires_at: datetime | None = None
) -> AccessRequest:
    """Give access until `expires_at`, or without an end. Spec: D169

    Raises: NotFound, Forbidden, AccessRequestDecided; Invalid for an end that has passed.
    """
    end = checked_end(expires_at, clock.now())
    row = _waiting_for(actor, organization, request_id)
    # Before the access is given, which would end a waiting request.
    row.access_until = end
    _decide(row, AccessRequest.State.APPROVED, actor)
    _record(EventType.ACCESS_REQUEST_APPROVED, actor, row, expiresAt=None if end is None else clock.rfc3339(end))
    add_member_vendor(
        actor=actor,
        organization=organization,
        user_id=row.membership.user_id,
        vendor=row.vendor,
        expires_at=end,
    )
    return row


@transaction.atomic
def decline_request(*, actor: User, organization: Organization, request_id: UUID, answer: str = "") -> AccessRequest:
    """`answer`: for the person who asked. Raises: NotFound, Forbidden, AccessRequestDecided, Invalid. Spec: D169"""
    cleaned = _text("answer", answer)
    row = _waiting_for(actor, organization, request_id)
    row.answer = cleaned
    _decide(row, AccessRequest.State.DECLINED, actor)
    _record(EventType.ACCESS_REQUEST_DECLINED, actor, row)
    return row


@transaction.atomic
def withdraw_request(*, actor: User, organization: Organization, request_id: UUID) -> None:
    """Raises: NotFound, also for another person's request; AccessRequestDecided. Spec: D169"""
    lock_for_change(organization, actor=actor, role=Role.MEMBER)
    row = required_row(_rows(organization).filter(pk=request_id, membership__user=actor))
    _require_waiting(row)
    _record(EventType.ACCESS_REQUEST_WITHDRAWN, actor, row)
    row.delete()


def _waiting_for(actor: User, organization: Organization, request_id: UUID) -> AccessRequest:
    """The request that the actor decides, under the organization's lock."""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    row = required_row(_rows(organization).filter(pk=request_id))
    _require_waiting(row)
    return row


def _rows(organization: Organization) -> QuerySet[AccessRequest]:
    return AccessRequest.objects.select_related("membership__user").filter(organization=organization)


def _require_waiting(row: AccessRequest) -> None:
    if row.state != AccessRequest.State.WAITING:
        raise AccessRequestDecided


def _decide(row: AccessRequest, state: AccessRequest.State, actor: User) -> None:
    row.state, row.decided_by, row.decided_at = state.value, actor, clock.now()
    row.save()


def _text(name: str, raw: str) -> str:
    """Raises: Invalid."""
    try:
        return clean_name(raw, max_characters=REASON_MAX_CHARACTERS, allow_empty=True)
    except ValueError as fault:
        raise Invalid(fields={name: [str(fault)]}) from fault


def _record(event: EventType, actor: User, row: AccessRequest, **facts: str | None) -> None:
    # Reasons and answers stay out of the log: they are free text between two people.
    record_admin(
        event,
        org_id=row.organization_id,
        actor=actor.as_actor(),
        target=row.as_target(),
        metadata={"vendor": row.vendor, **facts},
    )
