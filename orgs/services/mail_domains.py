"""An organization's mail domain: claimed by an owner, confirmed by support staff, released. docs/decisions/0097

People with a verified address of the domain are offered to join, and join by a click of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_lazy

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.coordination import epochs
from gateway.lib import clock
from gateway.lib.errors import Conflict, Forbidden, Invalid, NotFound
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.mail.kinds import MailKind, Purpose, register
from gateway.mail.outbox import queue_mail
from orgs import events
from orgs.locking import current_membership, lock_active_person, lock_for_change, lock_organization
from orgs.models import JoinRequest, MailDomain, Membership, Organization, Removal, User
from orgs.notices import has_role_by_address, owners_of, recipients_of
from orgs.quotas import require_quota
from orgs.roles import Role
from orgs.services.mail_providers import is_public_provider

# Of the host names of RFC 1123, with two labels at least.
_DOMAIN = re.compile(r"(?=.{4,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])\Z")
ASKED_TO_JOIN = register(
    MailKind(
        name="asked_to_join",
        purpose=Purpose.OPTIONAL,
        label=gettext_lazy("People who ask to join your organization"),
        subject=gettext_lazy("%(person)s asks to join %(organization)s"),
        is_still_for=lambda address, organization_id, facts: has_role_by_address(
            address, organization_id, [Role.OWNER]
        ),
    )
)


@dataclass(frozen=True, slots=True)
class JoinOffer:
    """`may_join`: the person may join at once, otherwise ask. `is_asked`, `is_declined`: the person's own request."""

    organization: Organization
    may_join: bool
    is_asked: bool = False
    is_declined: bool = False


def domain_of(user: User) -> str:
    """The domain of the person's verified address; empty without one, and for a public mail provider."""
    domain = user.email.rpartition("@")[2].lower() if user.email_verified else ""
    return domain if _DOMAIN.match(domain) and not is_public_provider(domain) else ""


def domains_of(organization: Organization) -> list[MailDomain]:
    """By name."""
    return list(MailDomain.objects.filter(organization=organization).order_by("domain"))


@transaction.atomic
def claim_domain(*, actor: User, organization: Organization, offer: str) -> MailDomain:
    """Claim the domain of the actor's own address. Support staff confirms it.

    Raises: Invalid for another offer; Conflict without a verified address of a domain of one's own, for a domain of
    another organization, and for one that is claimed already; NotFound, Forbidden for all but owners.
    """
    _check_offer(offer)
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    domain = domain_of(lock_active_person(actor))
    if not domain:
        raise Conflict(sentence("Your verified address isn’t in a domain that an organization can claim."))
    if MailDomain.objects.filter(domain=domain, confirmed_at__isnull=False).exclude(organization=locked).exists():
        raise Conflict(sentence("Another organization has already claimed this domain. Contact support."))
    row, is_new = MailDomain.objects.get_or_create(
        organization=locked, domain=domain, defaults={"offer": offer, "claimed_by": actor}
    )
    if not is_new:
        raise Conflict(sentence("Your organization has already claimed this domain."))
    _record(EventType.MAIL_DOMAIN_CLAIMED, actor, row, offer=offer)
    return row


@transaction.atomic
def confirm_domain(*, actor: Actor, domain_id: UUID) -> MailDomain:
    """By support staff. Raises: NotFound; Conflict if the claimant could not claim it today, or another one has it."""
    found = required_row(MailDomain.objects.filter(pk=domain_id))
    organization = lock_organization(found.organization_id)
    row = required_row(MailDomain.objects.select_related("claimed_by").filter(pk=domain_id))
    if row.confirmed_at is not None:
        raise Conflict(sentence("This domain is already confirmed."))
    if row.claimed_by is None or domain_of(row.claimed_by) != row.domain or not _is_owner(organization, row.claimed_by):
        raise Conflict(sentence("The person who claimed it is no longer an owner with an address in this domain."))
    row.confirmed_at = clock.now()
    try:
        # The unique constraint decides between two organizations.
        with transaction.atomic():
            row.save(update_fields=["confirmed_at"])
    except IntegrityError:
        raise Conflict(sentence("Another organization has already claimed this domain.")) from None
    _record(EventType.MAIL_DOMAIN_CONFIRMED, actor, row)
    return row


@transaction.atomic
def change_offer(*, actor: User, organization: Organization, domain_id: UUID, offer: str) -> MailDomain:
    """Raises: Invalid; NotFound, Forbidden for all but owners."""
    _check_offer(offer)
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    row = required_row(MailDomain.objects.filter(organization=locked, pk=domain_id))
    former, row.offer = row.offer, offer
    row.save(update_fields=["offer"])
    _record(EventType.MAIL_DOMAIN_UPDATED, actor, row, offer=offer, was=former)
    return row


@transaction.atomic
def release_domain(*, actor: User | Actor, organization: Organization, domain_id: UUID) -> None:
    """By an owner, or by support staff. Members stay, requests that wait end. Raises: NotFound, Forbidden."""
    locked = lock_for_change(organization, actor=actor, role=Role.OWNER)
    row = required_row(MailDomain.objects.filter(organization=locked, pk=domain_id))
    row.delete()
    if row.confirmed_at is not None:
        events.mail_domain_released.send(sender=MailDomain, organization_id=locked.pk, domain=row.domain)
    if not MailDomain.objects.filter(organization=locked, confirmed_at__isnull=False).exists():
        JoinRequest.objects.filter(organization=locked).delete()
    _record(EventType.MAIL_DOMAIN_RELEASED, actor, row)


def join_offers(user: User) -> list[JoinOffer]:
    """Organizations that offer the person to join; one at most. A person who was removed is offered nothing."""
    domain = domain_of(user)
    if not domain:
        return []
    members = Membership.objects.filter(organization=OuterRef("organization"), user=user)
    removals = Removal.objects.filter(organization=OuterRef("organization"), user=user)
    rows = MailDomain.objects.select_related("organization").filter(domain=domain, confirmed_at__isnull=False)
    rows = rows.filter(~Exists(members), ~Exists(removals))
    asked = {row.organization_id: row for row in JoinRequest.objects.filter(user=user)}
    return [_offer(row, asked.get(row.organization_id)) for row in rows]


def offered_organization(user: User, organization_id: UUID) -> Organization:
    """Raises: NotFound unless the person is offered to join it: other organizations are not told of."""
    found = next((each.organization for each in join_offers(user) if each.organization.pk == organization_id), None)
    if found is None:
        raise NotFound
    return found


def waiting_join_requests(organization: Organization) -> QuerySet[JoinRequest]:
    """Of people who are no members and were not removed, earliest first."""
    members = Membership.objects.filter(organization=organization, user=OuterRef("user"))
    removals = Removal.objects.filter(organization=organization, user=OuterRef("user"))
    rows = JoinRequest.objects.select_related("user").filter(organization=organization, declined_at=None)
    return rows.filter(~Exists(members), ~Exists(removals), user__is_active=True).order_by("created_at", "id")


@transaction.atomic
def join_by_domain(*, user: User, organization: Organization) -> Membership:
    """Raises: Forbidden unless the organization offers it to the person's address now; LimitReached; NotFound."""
    locked, person = _offered(organization, user, MailDomain.Offer.JOIN)
    return _admit(locked, person, person.as_actor(), EventType.MEMBER_JOINED)


@transaction.atomic
def ask_to_join(*, user: User, organization: Organization) -> JoinRequest:
    """Idempotent. Raises: Forbidden unless the organization offers it to the person's address now; NotFound."""
    locked, person = _offered(organization, user, MailDomain.Offer.ASK)
    row, is_new = JoinRequest.objects.get_or_create(organization=locked, user=person)
    if is_new:
        record_admin(
            EventType.JOIN_REQUESTED, org_id=locked.pk, actor=person.as_actor(), target=person.as_target(), metadata={}
        )
        facts = {"person": person.label, "organization": locked.name, "org_id": str(locked.pk), "email": person.email}
        to = recipients_of(owners_of(locked.pk))
        queue_mail(ASKED_TO_JOIN, to, organization_id=locked.pk, facts=facts, about=row.pk)
    return row


@transaction.atomic
def approve_join_request(*, actor: User, organization: Organization, request_id: UUID) -> Membership:
    """Raises: NotFound, also for a request that ended; Forbidden; Conflict for another address; LimitReached."""
    locked = lock_for_change(organization, actor=actor, role=Role.ADMIN)
    row = required_row(waiting_join_requests(locked).filter(pk=request_id))
    person = lock_active_person(row.user)
    if not _confirmed(locked, domain_of(person)).exists():
        raise Conflict(sentence("This person no longer has an address in your domain."))
    row.delete()
    return _admit(locked, person, actor.as_actor(), EventType.MEMBER_ADDED)


@transaction.atomic
def decline_join_request(*, actor: User, organization: Organization, request_id: UUID) -> None:
    """Raises: NotFound, Forbidden."""
    locked = lock_for_change(organization, actor=actor, role=Role.ADMIN)
    row = required_row(waiting_join_requests(locked).filter(pk=request_id))
    row.declined_at = clock.now()
    row.save(update_fields=["declined_at"])
    target = row.user.as_target()
    record_admin(EventType.JOIN_DECLINED, org_id=locked.pk, actor=actor.as_actor(), target=target, metadata={})


def _offer(row: MailDomain, asked: JoinRequest | None) -> JoinOffer:
    may_join = row.offer == MailDomain.Offer.JOIN
    is_declined = asked is not None and asked.declined_at is not None
    return JoinOffer(row.organization, may_join, asked is not None and not is_declined, is_declined)


def _offered(organization: Organization, user: User, offer: str) -> tuple[Organization, User]:
    """The organization and the person, both locked. Raises: NotFound; Forbidden; DeactivatedPerson."""
    locked = lock_organization(organization)
    person = lock_active_person(user)
    is_offered = _confirmed(locked, domain_of(person)).filter(offer=offer).exists()
    was_removed = Removal.objects.filter(organization=locked, user=person).exists()
    if not is_offered or was_removed:
        raise Forbidden(sentence("This organization doesn’t let people with your address join. Ask for an invitation."))
    return locked, person


def _confirmed(organization: Organization, domain: str) -> QuerySet[MailDomain]:
    return MailDomain.objects.filter(organization=organization, domain=domain, confirmed_at__isnull=False)


def _admit(organization: Organization, person: User, actor: Actor, event: EventType) -> Membership:
    require_quota(Membership.objects.filter(organization=organization), settings.MEMBERS_PER_ORGANIZATION, "members")
    # The unique constraint decides between two clicks of one person.
    row, is_new = Membership.objects.get_or_create(
        organization=organization, user=person, defaults={"role": Role.MEMBER.value}
    )
    if is_new:
        facts = {"role": row.role, "by": "mail_domain", "domain": domain_of(person)}
        record_admin(event, org_id=organization.pk, actor=actor, target=row.as_target(), metadata=facts)
        epochs.bump_on_commit(epochs.subject(str(person.pk)))
    return row


def _check_offer(offer: str) -> None:
    if offer not in MailDomain.Offer.values:
        raise Invalid(fields={"offer": [sentence("Must be ask or join.")]})


def _is_owner(organization: Organization, user: User) -> bool:
    try:
        current_membership(organization, user, role=Role.OWNER)
    except (NotFound, Forbidden):
        return False
    return True


def _record(event: EventType, actor: User | Actor, row: MailDomain, **facts: object) -> None:
    record_admin(event, org_id=row.organization_id, actor=actor.as_actor(), target=row.as_target(), metadata=facts)
