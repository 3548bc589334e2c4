"""Destinations that never answer beside one that does. A short form of `tests.faults.shipping_silent_destinations`."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.db import connections

from audit.models import LogDestination
from audit.shipping.claims import claim_due
from audit.shipping.delivery import deliver
from gateway.lib import clock
from gateway.lib.guarded_client import OutboundTimeout, Response
from tests.api.audit.rows import ORG
from tests.api.audit.shipping.stage import PlayedPlatform, deliver_due, make_destination, record_calls, until_readable

pytestmark = pytest.mark.django_db(transaction=True)
SILENT, ORGANIZATIONS, ROUNDS = 50, 10, 5
PATIENCE_S = 300


class Worker:
    """As many threads as the worker of log shipping has. `silent` destinations hold theirs until `end` is set."""

    def __init__(self) -> None:
        self.platform = PlayedPlatform()
        self.end = threading.Event()
        self.silent: set[uuid.UUID] = set()
        self.held: list[uuid.UUID] = []
        self._threads = ThreadPoolExecutor(settings.SHIPPING_CONCURRENCY)

    def start(self, pk: uuid.UUID, claim: uuid.UUID) -> Future[int]:
        return self._threads.submit(self._deliver, pk, claim)

    def _deliver(self, pk: uuid.UUID, claim: uuid.UUID) -> int:
        def request(*args: Any, **options: Any) -> Response:
            if pk not in self.silent:
                return self.platform(*args, **options)
            self.held.append(pk)
            assert self.end.wait(PATIENCE_S)
            raise OutboundTimeout("ReadTimeout")

        try:
            return deliver(pk, claim, request)
        finally:
            connections.close_all()

    def stop(self) -> None:
        self.end.set()
        self._threads.shutdown()


@contextmanager
def worker() -> Iterator[Worker]:
    made = Worker()
    try:
        yield made
    finally:
        made.stop()


def test_a_destination_that_answers_gets_each_record_while_fifty_hold_their_slots() -> None:
    good = make_destination(ORG)
    deliver_due(PlayedPlatform())
    crowd = [uuid.UUID(int=number + 1) for number in range(ORGANIZATIONS)]
    # A claim ends after a minute, which a slow machine may take.
    with time_machine.travel(clock.now(), tick=False), worker() as on:
        on.silent = {make_destination(crowd[n % ORGANIZATIONS], label=f"silent {n}").pk for n in range(SILENT)}
        for number in range(ROUNDS):
            record_calls(f"r-{number}")
            until_readable()
            started = {pk: on.start(pk, claim) for pk, claim in claim_due()}
            assert started[good.pk].result(PATIENCE_S) == 1
    assert on.platform.accepted() == [f"r-{number}" for number in range(ROUNDS)]
    assert LogDestination.objects.get(pk=good.pk).status == "ok"
    assert len(set(on.held)) == len(on.held) == settings.SHIPPING_CONCURRENCY // 2, "each was tried once"
    assert LogDestination.objects.filter(failures=1).count() == len(on.held)
