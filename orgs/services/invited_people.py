"""Invitations for a list of addresses: each address has its own result, and a faulty one stops no other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.event_types import EventType
from gateway.lib import clock
from gateway.lib.errors import Conflict, Forbidden, Invalid
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.mail.outbox import is_on
from orgs.errors import LimitReached
from orgs.locking import current_membership, lock_for_change
from orgs.models import Invitation, Membership, Organization, Team, User
from orgs.roles import Role
from orgs.services.invitation_mail import may_mail, queue_invitation
from orgs.services.invitations import (
    ADDRESS_CHARACTERS,
    InvitationTerms,
    checked_terms,
    is_address,
    new_invitation,
    record_invitation,
)
from orgs.services.server_access import require_vendors

_SEPARATORS = re.compile(r"[,;\s]+")
# The name in `Ada Lovelace <ada@example.com>`, as mail programs copy it. It begins where no name goes on: a search that
# tries each character of a long line would take the square of its length.
_BRACKETED = re.compile(r"(?<![^,;<>\r\n])[^,;<>\r\n]*<([^<>]*)>")


class LineResult(StrEnum):
    INVITED = "invited"
    ALREADY_MEMBER = "already_member"
    ALREADY_INVITED = "already_invited"
    INVALID = "invalid"
    # Too many messages today, of the organization or to this address, or too many open invitations.
    LIMIT_REACHED = "limit_reached"


@dataclass(frozen=True, slots=True)
class InvitedLine:
    """`invitation`: the new or the open one. `is_mailed`: a message with its link is on its way."""

    email: str
    result: LineResult
    invitation: Invitation | None = None
    is_mailed: bool = False


def addresses_in(text: str) -> list[str]:
    """Pure: the parts of a pasted list between commas, semicolons, spaces and lines, each once, in their order."""
    plain = _BRACKETED.sub(r" \1 ", text)
    found = (part for part in _SEPARATORS.split(plain) if part)
    return list({part.lower(): part for part in found}.values())


@transaction.atomic
def invite_people(
    *,
    actor: User,
    organization: Organization,
    emails: Sequence[str],
    role: Role = Role.MEMBER,
    team_ids: Sequence[UUID] = (),
    vendors: Sequence[str] = (),
    expires_in_days: int | None = None,
) -> list[InvitedLine]:
    """One single-use invitation and one message for each address, in the order of `emails`. Spec: D51, D161, D167

    Raises: Invalid with `fields` for a list that is empty or too long, an unknown team, vendor or role; NotFound;
    Forbidden if the actor is no longer an admin, or invites an admin without being an owner.
    """
    _check_length(emails)
    terms = checked_terms(email="", max_uses=1, expires_in_days=expires_in_days)
    wanted = require_vendors(vendors)
    locked = lock_for_change(organization, actor=actor, role=Role.ADMIN)
    _check_role(locked, actor, role)
    _check_teams(locked, team_ids)
    given = InvitationTerms("", 1, terms.days, role, tuple(dict.fromkeys(team_ids)), tuple(wanted))
    return list(_lines(locked, actor, list({each.strip().lower(): each.strip() for each in emails}.values()), given))


@transaction.atomic
def send_again(*, actor: User, organization: Organization, invitation_id: UUID) -> Invitation:
    """Send the message of an open invitation again. Raises: NotFound, Forbidden, Conflict, LimitReached."""
    locked = lock_for_change(organization, actor=actor, role=Role.ADMIN)
    open_ones = Invitation.objects.filter(organization=locked).pending(clock.now())
    invitation = required_row(open_ones.select_related("organization").filter(pk=invitation_id))
    if not invitation.email:
        raise Conflict(sentence("Anyone can use this link, so it isn’t sent by email. Copy it and send it yourself."))
    if not is_on():
        raise Conflict(sentence("This service sends no email. Copy the link and send it yourself."))
    if not may_mail(invitation.email, locked.pk):
        raise LimitReached(sentence("invitation emails per day"), settings.INVITATION_MAILS.limit)
    queue_invitation(invitation, inviter=actor)
    record_invitation(EventType.INVITATION_SENT, actor, invitation, email=invitation.email)
    return invitation


def _lines(
    organization: Organization, actor: User, emails: Sequence[str], given: InvitationTerms
) -> Iterator[InvitedLine]:
    people = Membership.objects.filter(organization=organization).values_list("user__email", flat=True)
    members = {each.lower() for each in people}
    pending = Invitation.objects.filter(organization=organization).pending(clock.now()).exclude(email="")
    invited = {row.email.lower(): row for row in pending}
    for email in emails:
        if not is_address(email):
            yield InvitedLine(email[:ADDRESS_CHARACTERS], LineResult.INVALID)
        elif email.lower() in members:
            yield InvitedLine(email, LineResult.ALREADY_MEMBER)
        elif email.lower() in invited:
            yield InvitedLine(email, LineResult.ALREADY_INVITED, invited[email.lower()])
        else:
            yield _invite(organization, actor, email, given)


def _invite(organization: Organization, actor: User, email: str, given: InvitationTerms) -> InvitedLine:
    if is_on() and not may_mail(email, organization.pk):
        return InvitedLine(email, LineResult.LIMIT_REACHED)
    terms = InvitationTerms(email, 1, given.days, given.role, given.team_ids, given.vendors)
    try:
        invitation = new_invitation(actor=actor, organization=organization, terms=terms)
    except LimitReached:
        return InvitedLine(email, LineResult.LIMIT_REACHED)
    return InvitedLine(email, LineResult.INVITED, invitation, queue_invitation(invitation, inviter=actor))


def _check_length(emails: Sequence[str]) -> None:
    if not emails:
        raise Invalid(fields={"emails": [sentence("Enter at least one email address.")]})
    if len(emails) > settings.INVITATION_ADDRESSES:
        limit = settings.INVITATION_ADDRESSES
        raise Invalid(fields={"emails": [sentence("Enter at most %(limit)s email addresses.", limit=limit)]})


def _check_role(organization: Organization, actor: User, role: Role) -> None:
    if role is Role.OWNER:
        raise Invalid(fields={"role": [sentence("Must be member or admin.")]})
    if role is Role.ADMIN and not current_membership(organization, actor, role=Role.ADMIN).has_role(Role.OWNER):
        raise Forbidden(sentence("Only owners can invite admins."))


def _check_teams(organization: Organization, team_ids: Sequence[UUID]) -> None:
    known = set(Team.objects.filter(organization=organization, pk__in=team_ids).values_list("pk", flat=True))
    if known != set(team_ids):
        raise Invalid(fields={"teams": [sentence("There is no such team.")]})
