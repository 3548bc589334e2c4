"""Destinations whose certificate or address is not theirs, over real TLS: nothing is sent, and the tenant reads why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpcore
import pytest
import time_machine
from cryptography import x509
from django.conf import LazySettings
from django.db import transaction

from audit.models import LogDestination
from audit.shipping import destinations
from audit.shipping.claims import claim_due
from audit.shipping.delivery import deliver
from gateway.lib import clock, guarded_client
from tests.api.audit.rows import ORG, OTHER_ORG
from tests.api.audit.shipping.stage import ANA, lag_of, record_calls, until_readable
from tests.fakes.authority import Authority
from tests.receivers import Receiver

pytestmark = pytest.mark.django_db(transaction=True)
NAME, PUBLIC = "logs.example.com", "93.184.216.34"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Trusted by the gateway."""
    made = Authority(tmp_path)
    context = made.trusting()
    monkeypatch.setattr(guarded_client, "_tls", lambda: context)
    return made


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> list[str]:
    """The addresses that a name resolves to, one after the other; the last one stays. All lead to this computer."""
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    found, connect = [PUBLIC], httpcore.SyncBackend.connect_tcp
    monkeypatch.setattr(guarded_client, "lookup", lambda *_: [found.pop(0) if len(found) > 1 else found[0]])
    monkeypatch.setattr(
        httpcore.SyncBackend, "connect_tcp", lambda self, host, *more: connect(self, "127.0.0.1", *more)
    )
    return found


Start = Callable[..., Receiver]


@pytest.fixture
def start(addresses: list[str]) -> Iterator[Start]:
    """Starts a receiver with a certificate of an authority for a name."""
    started: list[Receiver] = []

    def receiver(authority: Authority, name: str, days: int = 1) -> Receiver:
        made = Receiver("webhook", tls=authority.server(x509.DNSName(name), days=days))
        started.append(made.__enter__())
        return started[-1]

    yield receiver
    for each in started:
        each.__exit__()


def add(receiver: Receiver, org_id: Any = ORG) -> LogDestination:
    with transaction.atomic():
        made = destinations.create(
            org_id=org_id,
            actor=ANA,
            label="SIEM",
            platform="webhook",
            endpoint_url=f"https://{NAME}/hook",
            config={},
        )
        # The receiver has a port that the system chose.
        made.endpoint_url = f"https://{NAME}:{urlsplit(receiver.url).port}/hook"
        made.save()
    until_readable()
    return made


def deliver_due() -> int:
    until_readable()
    return sum(deliver(pk, claim) for pk, claim in claim_due())


def assert_refused(destination: LogDestination, words: str, waiting: int) -> None:
    destination.refresh_from_db()
    assert (destination.status, destination.failures) == ("failing", 1)
    assert destination.last_error == words
    assert lag_of(destination).records >= waiting, "nothing is lost"


@pytest.mark.parametrize(
    ("name", "days", "words"),
    [
        ("other.example.com", 1, "Nothing was sent: the certificate is for another name."),
        (NAME, -1, "Nothing was sent: the certificate has expired."),
    ],
)
def test_a_certificate_that_does_not_prove_the_name(
    authority: Authority, start: Start, name: str, days: int, words: str
) -> None:
    receiver, good = start(authority, name, days), start(authority, NAME)
    wrong, right = add(receiver), add(good, OTHER_ORG)
    record_calls("r-1")
    record_calls("r-2", org_id=OTHER_ORG)
    assert deliver_due() == 2
    assert_refused(wrong, words, 2)
    assert receiver.requests == []
    right.refresh_from_db()
    assert (right.status, right.delivered, good.violations) == ("ok", 2, [])


def test_a_certificate_of_an_unknown_authority(start: Start, tmp_path: Path) -> None:
    unknown = Authority(tmp_path)
    receiver = start(unknown, NAME)
    destination = add(receiver)
    record_calls("r-1")
    assert deliver_due() == 0
    assert_refused(destination, "Nothing was sent: the certificate is not trusted.", 2)
    assert receiver.requests == []


def test_after_the_certificate_is_replaced_everything_arrives(
    authority: Authority, start: Start, addresses: list[str]
) -> None:
    wrong, right = start(authority, "other.example.com"), start(authority, NAME)
    destination = add(wrong)
    record_calls("r-1")
    deliver_due()
    destination.refresh_from_db()
    # As if the server had been started again with another certificate.
    destination.endpoint_url = f"https://{NAME}:{urlsplit(right.url).port}/hook"
    destination.save()
    with time_machine.travel(clock.now() + timedelta(minutes=2)):
        assert deliver_due() >= 3, "created, the call, and the note of the failure"
    destination.refresh_from_db()
    assert (destination.status, destination.last_error) == ("ok", "")


@pytest.mark.parametrize("inside", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1"])
def test_a_name_that_leads_inside_at_the_second_look(
    authority: Authority, start: Start, addresses: list[str], inside: str
) -> None:
    receiver = start(authority, NAME)
    destination = add(receiver)
    assert deliver_due() == 1, "it led outside"
    addresses[:] = [inside]
    record_calls("r-1")
    assert deliver_due() == 0
    assert_refused(destination, "The address points to a network that is not allowed.", 1)
    assert len(receiver.requests) == 1
    addresses[:] = [PUBLIC]
    with time_machine.travel(clock.now() + timedelta(minutes=2)):
        assert deliver_due() >= 2, "the call, and the note of the failure"
    assert receiver.violations == []


def test_an_address_that_became_the_gateways_own(authority: Authority, start: Start, settings: LazySettings) -> None:
    receiver = start(authority, NAME)
    destination = add(receiver)
    settings.BASE_URL = f"https://{NAME}:{urlsplit(receiver.url).port}"
    assert deliver_due() == 0
    assert_refused(destination, "This is the gateway’s own address. Enter a different one.", 1)
    assert receiver.requests == []
