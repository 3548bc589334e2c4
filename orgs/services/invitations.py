"""Invitations: create, revoke, accept. A token is shown to admins and stored sealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib import clock, ids, secrets
from gateway.lib.errors import Invalid, NotFound
from gateway.lib.revocation_journal import End, EndKind, note
from gateway.lib.sentences import sentence
from orgs.errors import (
    InvitationBeforeRemoval,
    InvitationEmailMismatch,
    InvitationExpired,
    InvitationNotFound,
    InvitationUsed,
)
from orgs.locking import lock_for_change, lock_organization
from orgs.models import Invitation, InvitationState, Membership, Organization, Removal, User
from orgs.quotas import require_quota
from orgs.roles import Role
from orgs.services.invitation_sealing import seal_token
from orgs.services.joining import give_at_joining

ADDRESS_CHARACTERS = 254
# Quoted names, names in encoded words, and addresses of a network in place of a domain.
_OTHER_SPELLINGS = ('"', "=?", "[")


@dataclass(frozen=True, slots=True)
class AcceptedInvitation:
    """`already_member`: the person was a member before, and no use was consumed."""

    membership: Membership
    already_member: bool


@dataclass(frozen=True, slots=True)
class InvitationTerms:
    """`email`: empty for anybody with the link. `role`, `team_ids` and `vendors` are given at joining."""

    email: str
    max_uses: int
    days: int
    role: Role = Role.MEMBER
    team_ids: Sequence[UUID] = ()
    vendors: Sequence[str] = ()

    @property
    def given(self) -> dict[str, object]:
        """For the log: rights beyond membership."""
        given = {"role": self.role.value, "teams": list(map(str, self.team_ids)), "vendors": list(self.vendors)}
        return {name: value for name, value in given.items() if value and value != Role.MEMBER.value}


@transaction.atomic
def create_invitation(
    *,
    actor: User,
    organization: Organization,
    email: str | None = None,
    max_uses: int = 1,
    expires_in_days: int | None = None,
) -> Invitation:
    """A link for `max_uses` people, or for the person with `email`. Spec: §4.4 · D48-D51, D161

    Raises: Invalid with `fields`; LimitReached; NotFound, Forbidden.
    """
    terms = checked_terms(email=email or "", max_uses=max_uses, expires_in_days=expires_in_days)
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    return new_invitation(actor=actor, organization=organization, terms=terms)


def new_invitation(*, actor: User, organization: Organization, terms: InvitationTerms) -> Invitation:
    """The caller holds the organization's lock, and has looked at the actor's role. Raises: LimitReached."""
    open_ones = Invitation.objects.filter(organization=organization).pending(clock.now())
    require_quota(open_ones, settings.INVITATIONS_PER_ORGANIZATION, sentence("pending invitations"))
    # The token is in no log: the audit row names the invitation by its id.
    token, invitation_id, now = secrets.random_url_safe(), ids.new_id(), clock.now()
    key_id, sealed = seal_token(token, org_id=organization.id, invitation_id=invitation_id)
    invitation = Invitation.objects.create(
        id=invitation_id,
        organization=organization,
        token_sha256=secrets.sha256(token),
        token_sealed=sealed,
        token_key_id=key_id,
        email=terms.email,
        max_uses=terms.max_uses,
        role=terms.role.value,
        team_ids=list(map(str, terms.team_ids)),
        vendors=list(terms.vendors),
        created_by=actor,
        created_at=now,
        expires_at=now + timedelta(days=terms.days),
    )
    facts = {"maxUses": terms.max_uses, "expiresInDays": terms.days, "email": terms.email, **terms.given}
    record_invitation(EventType.INVITATION_CREATED, actor, invitation, **facts)
    return invitation


@transaction.atomic
def revoke_invitation(*, actor: User | Actor, organization: Organization, invitation_id: UUID) -> None:
    """Raises: NotFound, also if already revoked; Forbidden. Spec: §4.4 · D9, D51"""
    lock_for_change(organization, actor=actor, role=Role.ADMIN)
    rows = Invitation.objects.filter(organization=organization, pk=invitation_id, revoked_at=None)
    if not rows.update(revoked_at=clock.now()):
        raise NotFound
    note(End(EndKind.INVITATION, str(invitation_id), str(organization.pk)))
    # Members who joined by the link stay.
    record_invitation(EventType.INVITATION_REVOKED, actor, Invitation.objects.get(pk=invitation_id))


def revoke_pending_of(*, actor: User | Actor, organization_id: UUID, created_by_id: UUID) -> None:
    """Revoke one person's pending invitations, bound to an address or not. The caller holds the lock. Spec: D162"""
    rows = Invitation.objects.pending(clock.now())
    for invitation in rows.filter(organization_id=organization_id, created_by_id=created_by_id):
        Invitation.objects.filter(pk=invitation.pk).update(revoked_at=clock.now())
        note(End(EndKind.INVITATION, str(invitation.pk), str(organization_id)))
        record_invitation(EventType.INVITATION_REVOKED, actor, invitation)


def find_invitation(token: str) -> Invitation:
    """Raises: InvitationNotFound if unknown or revoked, or while the person who made it is deactivated.

    Expired and used ones are returned. Spec: D54
    """
    found = (
        Invitation.objects.select_related("organization", "created_by")
        .filter(token_sha256=secrets.sha256(token))
        .first()
    )
    if found is None or found.revoked_at is not None or not (found.created_by is None or found.created_by.is_active):
        raise InvitationNotFound
    return found


@transaction.atomic
def accept_invitation(*, user: User, token: str) -> AcceptedInvitation:
    """Make the person a member; an existing member keeps the role. Spec: §4.4 · D51-D55, D161, D162

    Raises: InvitationNotFound, InvitationExpired, InvitationUsed, InvitationEmailMismatch, InvitationBeforeRemoval,
    LimitReached. A refusal consumes no use.
    """
    invitation = find_invitation(token)
    try:
        organization = lock_organization(invitation.organization)
    # Deleted after `find_invitation`, with its invitations.
    except NotFound:
        raise InvitationNotFound from None
    existing = Membership.objects.filter(organization=organization, user=user).first()
    if existing is not None:
        return AcceptedInvitation(existing, already_member=True)
    if invitation.email and not user.owns_email(invitation.email):
        raise InvitationEmailMismatch
    _refuse_unusable(invitation)
    _refuse_removed(user, invitation)
    require_quota(Membership.objects.filter(organization=organization), settings.MEMBERS_PER_ORGANIZATION, "members")
    # The unique constraint decides between two acceptances of one person.
    membership, joined = Membership.objects.get_or_create(
        organization=organization, user=user, defaults={"role": Role.MEMBER.value}
    )
    if not joined:
        return AcceptedInvitation(membership, already_member=True)
    # Raising rolls the membership back.
    _take_use(invitation)
    record_admin(
        EventType.INVITATION_ACCEPTED,
        org_id=organization.id,
        actor=user.as_actor(),
        target=invitation.as_target(),
        metadata={"email": user.email},
    )
    epochs.bump_on_commit(epochs.subject(str(user.id)))
    give_at_joining(invitation, membership)
    return AcceptedInvitation(membership, already_member=False)


def _take_use(invitation: Invitation) -> None:
    """Raises: InvitationNotFound, InvitationExpired, InvitationUsed."""
    if not Invitation.objects.take_one_use(invitation.pk, clock.now()):
        invitation.refresh_from_db(fields=["use_count", "revoked_at", "expires_at"])
        _refuse_unusable(invitation)
        raise InvitationUsed
    invitation.refresh_from_db(fields=["use_count"])
    if invitation.use_count >= invitation.max_uses:
        # A restored database would admit another person by it.
        note(End(EndKind.INVITATION, str(invitation.pk), str(invitation.organization_id)))


def _refuse_removed(user: User, invitation: Invitation) -> None:
    """Raises: InvitationBeforeRemoval. Spec: D162"""
    # An invitation that is made after the removal admits the person again.
    removals = Removal.objects.filter(organization_id=invitation.organization_id, user=user)
    if removals.filter(removed_at__gte=invitation.created_at).exists():
        raise InvitationBeforeRemoval


def _refuse_unusable(invitation: Invitation) -> None:
    match invitation.state(clock.now()):
        case InvitationState.REVOKED:
            raise InvitationNotFound
        case InvitationState.ACCEPTED:
            raise InvitationUsed
        case InvitationState.EXPIRED:
            raise InvitationExpired


def checked_terms(*, email: str, max_uses: int, expires_in_days: int | None) -> InvitationTerms:
    """Raises: Invalid with `fields`."""
    days = settings.INVITATION_DEFAULT_DAYS if expires_in_days is None else expires_in_days
    faults: dict[str, list[str]] = {}
    bound_to = email.strip()
    if bound_to and not is_address(bound_to):
        faults["email"] = [sentence("Enter an email address.")]
    if not 1 <= max_uses <= settings.INVITATION_MAX_USES:
        faults["maxUses"] = [
            sentence("Must be from 1 to %(invitation_max_uses)s.", invitation_max_uses=settings.INVITATION_MAX_USES)
        ]
    if not 1 <= days <= settings.INVITATION_MAX_DAYS:
        faults["expiresInDays"] = [
            sentence("Must be from 1 to %(invitation_max_days)s.", invitation_max_days=settings.INVITATION_MAX_DAYS)
        ]
    if faults:
        raise Invalid(fields=faults)
    return InvitationTerms(bound_to, max_uses, days)


def is_address(text: str) -> bool:
    """Whether the text is one e-mail address of at most 254 characters, in the plain spelling of its mailbox."""
    # `"a"@x.org` is delivered to `a@x.org`: its limit and its unsubscription would not count for the other spelling.
    is_plain = text.rpartition("@")[0].isascii() and not any(part in text for part in _OTHER_SPELLINGS)
    if len(text) > ADDRESS_CHARACTERS or not is_plain:
        return False
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def record_invitation(event: EventType, actor: User | Actor, invitation: Invitation, **facts: object) -> None:
    record_admin(
        event,
        org_id=invitation.organization_id,
        actor=actor.as_actor(),
        target=invitation.as_target(),
        metadata=facts,
    )
