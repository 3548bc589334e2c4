"""Messages of alerts: a row each, with its e-mails, in the transaction of the round that tells them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.mail.models import OutgoingMail
from gateway.mail.outbox import Recipient, is_on, mails_for, queue_all
from orgs.alert_terms import OF_OWNERS, Moment
from orgs.models import Alert, AlertMessage, AlertSettings, Membership
from orgs.notices import recipient_of
from orgs.roles import Role
from proxy.control_plane.alerts.mail import ALERT

_BATCH = 500


@dataclass(frozen=True, slots=True)
class DueMessage:
    """`settings`: those of the organization."""

    alert: Alert
    moment: Moment
    settings: AlertSettings


@dataclass(frozen=True, slots=True)
class _People:
    organization: str = ""
    owners: tuple[Recipient, ...] = ()
    admins: tuple[Recipient, ...] = ()


def queue_messages(due: Sequence[DueMessage], now: datetime) -> int:
    """Return their number."""
    people = _people_of({each.alert.organization_id for each in due if each.settings.by_mail})
    messages: list[AlertMessage] = []
    mails: list[OutgoingMail] = []
    for each in due:
        message = _message(each, now)
        own = _mails(each, message, people[each.alert.organization_id]) if each.settings.by_mail else []
        message.mails = len(own)
        mails += own
        messages.append(message)
    AlertMessage.objects.bulk_create(messages, batch_size=_BATCH)
    for place in range(0, len(mails), _BATCH):
        queue_all(mails[place : place + _BATCH])
    return len(messages)


def _message(due: DueMessage, now: datetime) -> AlertMessage:
    alert = due.alert
    return AlertMessage(
        organization_id=alert.organization_id,
        alert=alert,
        kind=alert.kind,
        cause=alert.cause,
        moment=due.moment.value,
        label=alert.label,
        detail=alert.detail,
        level=alert.level,
        began_at=alert.began_at,
        created_at=now,
        next_attempt_at=now,
        webhook=_webhook_state(due.settings),
    )


def _webhook_state(settings: AlertSettings) -> str:
    """The first state of a message at the webhook."""
    return (AlertMessage.Delivery.WAITING if settings.webhook_url else AlertMessage.Delivery.NONE).value


def _mails(due: DueMessage, message: AlertMessage, people: _People) -> list[OutgoingMail]:
    if not is_on():
        return []
    to = people.owners if due.alert.kind in OF_OWNERS else people.owners + people.admins
    facts = {
        "organization": people.organization,
        "org_id": str(message.organization_id),
        "kind": message.kind,
        "cause": message.cause,
        "moment": message.moment,
        "label": message.label,
        "detail": message.detail,
        "level": message.level,
        "began_at": message.began_at,
        "ended_at": due.alert.ended_at or message.created_at,
    }
    return mails_for(ALERT, to, organization_id=message.organization_id, facts=facts, about=message.pk)


def _people_of(org_ids: Iterable[UUID]) -> dict[UUID, _People]:
    rows = Membership.objects.select_related("user", "organization").filter(
        organization_id__in=org_ids, role__in=[Role.OWNER.value, Role.ADMIN.value], user__is_active=True
    )
    names: dict[UUID, str] = {}
    by_role: dict[tuple[UUID, str], list[Recipient]] = defaultdict(list)
    for row in rows.order_by("joined_at", "id"):
        names[row.organization_id] = row.organization.name
        if (recipient := recipient_of(row.user)) is not None:
            by_role[row.organization_id, row.role].append(recipient)
    found: dict[UUID, _People] = defaultdict(_People)
    for org_id, name in names.items():
        owners, admins = (tuple(by_role[org_id, role.value]) for role in (Role.OWNER, Role.ADMIN))
        found[org_id] = _People(name, owners, admins)
    return found
