"""Ends again in a restored database: sessions, support access, invitations, mail domains. docs/decisions/0083"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction

from audit.actor import Actor
from gateway.lib import clock
from gateway.lib.errors import NotFound
from gateway.lib.revocation_journal import session_id
from orgs.models import Invitation, MailDomain, Organization, User
from orgs.services.invitations import revoke_invitation
from orgs.services.mail_domains import release_domain
from orgs.services.people import revoke_staff

_BATCH_ROWS = 1_000


def end_sessions_again(people: Mapping[str, datetime], ids: Collection[str]) -> int:
    """End the sessions with the journal's `ids`, and those that `people` had at the given times; return how many."""
    return _end_sessions(lambda row, person: session_id(row.pk) in ids or _was_stored(row, people.get(person)))


def end_sessions_of_before(restored_to: datetime) -> int:
    """End the sessions of all people that were stored until the restored moment; return how many."""
    return _end_sessions(lambda row, person: bool(person) and _was_stored(row, restored_to))


def _was_stored(row: Session, moment: datetime | None) -> bool:
    """Whether the session was there at `moment`: a later one expires later than any of before."""
    return moment is not None and row.expire_date <= moment + timedelta(seconds=settings.SESSION_COOKIE_AGE)


def _end_sessions(is_over: Callable[[Session, str], bool]) -> int:
    """`is_over` gets each session, and the id of the person who signed in to it or an empty text."""
    ended, last = 0, ""
    while rows := list(Session.objects.filter(pk__gt=last).order_by("pk")[:_BATCH_ROWS]):
        last = rows[-1].pk
        going = [row.pk for row in rows if is_over(row, str(row.get_decoded().get(SESSION_KEY, "")))]
        with transaction.atomic():
            ended += Session.objects.filter(pk__in=going).delete()[1].get(Session._meta.label, 0)
    return ended


def end_support_access_again(user_id: UUID) -> bool:
    person = User.objects.filter(pk=user_id).first()
    return person is not None and (person.is_staff or person.is_superuser) and revoke_staff(person)


def revoke_invitation_again(*, actor: Actor, organization: Organization, invitation_id: UUID) -> bool:
    try:
        revoke_invitation(actor=actor, organization=organization, invitation_id=invitation_id)
    except NotFound:
        return False
    return True


def release_domain_again(*, actor: Actor, organization: Organization, domain_id: UUID) -> bool:
    try:
        release_domain(actor=actor, organization=organization, domain_id=domain_id)
    except NotFound:
        return False
    return True


def release_all_domains(*, actor: Actor, organization: Organization, restored_to: datetime) -> int:
    """Release the domains that were claimed before: they may have been released since."""
    rows = list(MailDomain.objects.filter(organization=organization, created_at__lte=restored_to))
    for each in rows:
        release_domain(actor=actor, organization=organization, domain_id=each.pk)
    return len(rows)


def revoke_all_invitations(*, actor: Actor, organization: Organization, restored_to: datetime) -> int:
    """Revoke the links of before: they may have been used or revoked since."""
    rows = Invitation.objects.pending(clock.now()).filter(organization=organization, created_at__lte=restored_to)
    for each in rows:
        revoke_invitation(actor=actor, organization=organization, invitation_id=each.pk)
    return len(rows)
