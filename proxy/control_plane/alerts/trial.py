"""A test message to the webhook and to the person who asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from audit.shipping.platforms.exchange import DestinationRefused
from audit.shipping.sending import Sender
from audit.shipping.trial import trial_slot
from gateway.lib import clock
from gateway.lib.database_threads import give_connections_back
from gateway.lib.errors import Conflict
from gateway.lib.guarded_client import Response, send
from gateway.lib.sentences import sentence
from gateway.mail.outbox import is_on, queue_mail
from orgs.alert_terms import Moment
from orgs.models import AlertMessage, Organization, User
from orgs.notices import recipient_of
from orgs.services.alert_settings import settings_of
from proxy.control_plane.alerts.mail import ALERT
from proxy.control_plane.alerts.webhook import deliver, sender_of

NOTHING = sentence("Nothing to test: there is no webhook, and we can’t email you.")


@dataclass(frozen=True, slots=True)
class Trial:
    """`mailed_to`: empty without an e-mail. `webhook`: None without a webhook; `answer`: why it did not accept."""

    mailed_to: str = ""
    webhook: bool | None = None
    answer: str = ""


def send_test(*, actor: User, organization: Organization, request: Callable[..., Response] = send) -> Trial:
    """Blocks as long as one delivery. The message is in the list of messages.

    Raises: Conflict with nothing to test; TooManyTests.
    """
    row, now = settings_of(organization), clock.now()
    recipient = recipient_of(actor) if row.by_mail and is_on() else None
    if recipient is None and not row.webhook_url:
        raise Conflict(NOTHING)
    message = AlertMessage(organization=organization, moment=Moment.TEST.value, began_at=now, created_at=now)
    if recipient is not None:
        facts = {"organization": organization.name, "org_id": str(organization.pk), "moment": Moment.TEST.value}
        message.mails = len(
            queue_mail(ALERT, [recipient], organization_id=organization.pk, facts=facts, about=message.pk)
        )
    accepted, answer = None, ""
    if row.webhook_url:
        refusal = _refusal(sender_of(row, request), message, organization.name)
        accepted, answer = refusal is None, refusal or ""
        message.webhook = (AlertMessage.Delivery.SENT if accepted else AlertMessage.Delivery.FAILED).value
        message.attempts, message.reason = 1, answer
        message.delivered_at = clock.now() if accepted else None
    message.save(force_insert=True)
    return Trial("" if recipient is None else recipient.address, accepted, answer)


def _refusal(sender: Sender | DestinationRefused, message: AlertMessage, name: str) -> str | None:
    """Why the webhook did not accept the message; None if it did."""
    if isinstance(sender, DestinationRefused):
        return sender.reason
    with trial_slot(message.organization_id):
        give_connections_back()
        return deliver(sender, message, name)
