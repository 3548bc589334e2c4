"""A mail server, a webhook and a clock of the test's own; two organizations, of which the first has the webhook."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from gateway.lib import clock
from tests.api.alerts.stage import Stage
from tests.api.audit.conftest import undisturbed_stream
from tests.api.proxy.conftest import agent, served_by, tenant, vendor
from tests.factories.cast import Cast
from tests.fakes import smtp_server
from tests.receivers.receiver import Receiver

__all__ = ["agent", "served_by", "tenant", "undisturbed_stream", "vendor"]
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


@pytest.fixture
def traveller() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as moving:
        yield moving


@pytest.fixture
def stage(
    committed_cast: Cast, settings: Any, traveller: time_machine.Traveller, undisturbed_stream: None
) -> Iterator[Stage]:
    settings.ALLOW_PRIVATE_ENDPOINTS = True
    with smtp_server.running(settings) as mailbox, Receiver("webhook", clock=clock.now) as receiver:
        stage = Stage(committed_cast, mailbox, receiver, traveller)
        stage.begin()
        yield stage
