"""Rounds of looking, sending and delivering, and what has arrived."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import time_machine

from gateway.coordination import backend
from gateway.lib import clock
from gateway.mail.sending import send_waiting
from orgs.models import Alert, AlertMessage, AlertSettings
from orgs.services.alert_settings import Changes, change_settings
from proxy.control_plane.alerts.delivery import deliver_waiting
from proxy.control_plane.alerts.watch import watch
from proxy.control_plane.health import state_cache
from proxy.control_plane.health.states import HealthStatus, VendorHealth
from tests.api.audit.shipping.stage import until_readable
from tests.factories.cast import Cast
from tests.fakes.smtp_server import Mailbox
from tests.receivers.receiver import Receiver
from tests.receivers.webhook import key_of


@dataclass
class Stage:
    """`round` looks, and sends what is due. E-mail goes to owner and admin of the first organization."""

    cast: Cast
    mailbox: Mailbox
    receiver: Receiver
    traveller: time_machine.Traveller
    # As the monitor sees the vendors, in each round anew.
    states: dict[str, tuple[HealthStatus, int, str | None]] = field(
        default_factory=lambda: {"acme": (HealthStatus.HEALTHY, 0, None)}, init=False
    )

    def begin(self) -> None:
        made = change_settings(
            actor=self.cast.user("owner"),
            organization=self.cast.org,
            changes=Changes(webhook_url=f"{self.receiver.url}/alerts"),
        )
        self.receiver.wire.keys = [key_of(made.secret)]  # type: ignore[attr-defined]
        until_readable()
        watch()

    def change(self, **changes: Any) -> AlertSettings:
        return change_settings(
            actor=self.cast.user("owner"), organization=self.cast.org, changes=Changes(**changes)
        ).row

    def round(self, minutes: float = 0) -> int:
        """The number of messages that the round has told, after so many minutes."""
        self.traveller.shift(timedelta(minutes=minutes))
        until_readable()
        self.keep_states()
        told = watch(is_slow=True)
        deliver_waiting()
        send_waiting()
        return told

    def keep_states(self) -> None:
        for slug, (status, failures, detail) in self.states.items():
            state = VendorHealth(status, clock.now(), 12, "1.2", detail, failures)
            state_cache.write(backend.current(), slug, state)

    def health(self, slug: str, status: HealthStatus, *, failures: int = 0, error_detail: str | None = None) -> None:
        """The monitor sees it so from now on."""
        self.states[slug] = (status, failures, error_detail)

    def subjects(self, address: str = "owner@example.com") -> list[str]:
        """Of the alerts to one address. Other notices have no link to unsubscribe."""
        mine = [each for each in self.mailbox.messages if each["To"] == address]
        return [str(each["Subject"]) for each in mine if each["List-Unsubscribe"]]

    def events(self) -> list[dict[str, Any]]:
        """The events that the webhook has got, in order."""
        assert not self.receiver.violations
        found = [event for each in self.receiver.events for event in each["payload"]["events"]]
        return [{"type": each["type"], **each["data"]} for each in found]

    def told(self) -> list[tuple[str, str, str]]:
        """(type, kind, text) of what the webhook has got."""
        return [(each["type"], each["kind"], each["text"]) for each in self.events()]

    def alert(self) -> Alert:
        return Alert.objects.get(organization=self.cast.org)

    def messages(self) -> list[AlertMessage]:
        return list(AlertMessage.objects.filter(organization=self.cast.org).order_by("created_at", "id"))
