"""One alert message as an event for the webhook, in the form and with the signature of log shipping's webhook."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.utils import translation

from audit.shipping.events import Event
from audit.shipping.platforms.exchange import Delivered, DestinationRefused, Target
from audit.shipping.platforms.registry import PLATFORMS
from audit.shipping.platforms.webhook import Webhook
from audit.shipping.sending import Sender
from gateway.lib import clock
from gateway.lib.guarded_client import Response
from gateway.lib.outbound import is_own
from gateway.lib.sentences import sentence
from orgs.alert_terms import Moment
from orgs.models import AlertMessage, AlertSettings
from orgs.services.alert_secret_sealing import secrets_of
from orgs.services.alert_settings import previous_secret_end
from proxy.control_plane.alerts import words
from proxy.control_plane.alerts.listing import told_in

_TYPES = {
    Moment.BEGIN: "alert.began",
    Moment.WORSE: "alert.worsened",
    Moment.END: "alert.ended",
    Moment.TEST: "alert.test",
}


def sender_of(row: AlertSettings, request: Callable[..., Response]) -> Sender | DestinationRefused:
    if not row.webhook_url:
        return DestinationRefused(sentence("The webhook was removed."))
    # The service may have moved to this address since it was stored.
    if is_own(row.webhook_url, settings.BASE_URL):
        return DestinationRefused(sentence("This is the gateway’s own address. Enter a different one."))
    secrets = secrets_of(row)
    if secrets is None:
        return DestinationRefused(sentence("The signing secret can’t be decrypted. Rotate it."))
    config = {"secret": secrets.secret}
    if secrets.previous and previous_secret_end(row, clock.now()):
        config["previousSecret"] = secrets.previous
    # The key of a token, which a webhook does not have.
    return Sender(PLATFORMS[Webhook.value], Target(row.webhook_url, config), (row.pk, b""), request)


def deliver(sender: Sender, message: AlertMessage, organization_name: str) -> str | None:
    """None: the receiver has it; otherwise why not, in words without a secret. Blocks; needs no database."""
    verdict = sender.send([event_of(message, organization_name)]).verdict
    return None if isinstance(verdict, Delivered) else sender.words(verdict.reason)


def event_of(message: AlertMessage, organization_name: str) -> Event:
    """Machines read English. The same message has the same id and body at each attempt."""
    moment = Moment(message.moment)
    fields: dict[str, object] = {"orgId": str(message.organization_id), "organization": organization_name}
    with translation.override("en"):
        if moment is Moment.TEST:
            fields["text"] = sentence("This is a test alert. Nothing is wrong.")
        else:
            fields |= _of_alert(message)
    return Event(str(message.id), _TYPES[moment], message.created_at, fields)


def _of_alert(message: AlertMessage) -> dict[str, object]:
    told = told_in(message)
    return {
        "alertId": str(message.alert_id),
        "kind": told.kind.value,
        "cause": message.cause,
        "label": message.label,
        "level": message.level,
        "beganAt": clock.rfc3339(message.began_at),
        "text": words.headline(told),
        "detail": words.detail(told),
        "url": words.page_of(message.organization_id, told.kind, message.cause),
    }
