"""The message that brings an invitation, and its one reminder. The link is made when it is sent. docs/decisions/0097"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from gateway.coordination import backend
from gateway.lib import clock
from gateway.mail.kinds import Facts, MailKind, Purpose, register
from gateway.mail.opt_outs import digest_of
from gateway.mail.outbox import Recipient, is_on, queue_mail
from orgs.models import Invitation, User
from orgs.notices import recipient_of
from orgs.services.invitation_sealing import token_of

REMINDED_BEFORE_END = timedelta(days=2)
# A short invitation is not followed by a reminder at once.
REMINDED_AFTER = timedelta(days=1)


def link_facts(stored: Facts) -> Facts | None:
    """None for an invitation that ended, of a deactivated person, or whose link cannot be opened any more."""
    rows = Invitation.objects.select_related("organization").pending(clock.now())
    invitation = rows.filter(pk=stored["invitation"]).exclude(created_by__is_active=False).first()
    token = None if invitation is None else token_of(invitation)
    if invitation is None or token is None:
        return None
    link = f"{settings.BASE_URL}/invite/{token}"
    return {"link": link, "expires_at": clock.rfc3339(invitation.expires_at), "role": invitation.role}


INVITATION = register(
    MailKind(
        name="invitation",
        purpose=Purpose.OPTIONAL,
        label=gettext_lazy("Invitations to organizations"),
        subject=gettext_lazy("%(inviter)s invites you to join %(organization)s"),
        facts_at_sending=link_facts,
    )
)


def may_mail(invitation_email: str, organization_id: object) -> bool:
    """Count a message. False: the organization has sent as many today, or the address got as many from all of them."""
    store = backend.current()
    address = digest_of(invitation_email).hex()
    if not store.peek(settings.INVITATION_MAILS, f"org:{organization_id}").allowed:
        return False
    if not store.hit(settings.INVITATION_MAILS_TO_ADDRESS, address).allowed:
        return False
    return store.hit(settings.INVITATION_MAILS, f"org:{organization_id}").allowed


def queue_invitation(invitation: Invitation, *, inviter: User | None, is_reminder: bool = False) -> bool:
    """Queue the message in the open transaction and note its time. False without e-mail."""
    if not is_on():
        return False
    facts = {
        "invitation": str(invitation.pk),
        "organization": invitation.organization.name,
        "inviter": invitation.organization.name if inviter is None else inviter.label,
        "is_reminder": is_reminder,
    }
    to = [_recipient(invitation, inviter)]
    queue_mail(INVITATION, to, organization_id=invitation.organization_id, facts=facts, about=invitation.pk)
    invitation.mailed_at = clock.now()
    invitation.save(update_fields=["mailed_at"])
    return True


def _recipient(invitation: Invitation, inviter: User | None) -> Recipient:
    # A person who is known here is written to in the own language, all others in the inviter's.
    known = User.objects.filter(email__iexact=invitation.email, email_verified=True, is_active=True).first()
    language = known.language if known is not None and recipient_of(known) else ""
    return Recipient(invitation.email, language or ("" if inviter is None else inviter.language))


def remind(limit: int = 500) -> int:
    """Queue the reminders that are due; returns their number. Each invitation has one. Several may run at once."""
    if not is_on():
        return 0
    now = clock.now()
    due = _due(now).select_related("organization", "created_by").order_by("expires_at")[:limit]
    return sum(_remind(each, now) for each in list(due))


def _due(now: datetime) -> QuerySet[Invitation]:
    rows = Invitation.objects.pending(now).filter(reminded_at=None, mailed_at__lte=now - REMINDED_AFTER)
    return rows.filter(expires_at__lte=now + REMINDED_BEFORE_END).exclude(email="")


@transaction.atomic
def _remind(invitation: Invitation, now: datetime) -> bool:
    # The WHERE clause is the lock: of two workers, one reminds.
    if not Invitation.objects.filter(pk=invitation.pk, reminded_at=None).update(reminded_at=now):
        return False
    return queue_invitation(invitation, inviter=invitation.created_by, is_reminder=True)
