"""The scheduled runs of the mirror."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from djstripe.models import Customer, Event, Subscription

from billing import models as own
from billing import tasks
from billing.mirror import runs
from gateway.lib import clock
from orgs.services import organizations
from tests.factories.cast import Cast
from tests.stripe_mode import provider as objects
from tests.stripe_mode.conftest import received
from tests.stripe_mode.provider import Provider

pytestmark = pytest.mark.django_db
AWAY = [
    (500, b"{}"),
    (503, b"not JSON"),
    (429, b'{"error": {"code": "rate_limit"}}'),
    (302, b""),
    (401, b'{"error": {"type": "invalid_request_error"}}'),
    (200, b"[]"),
    (200, b""),
]


def own_rows() -> list[Any]:
    """All that decides about plans."""
    return [list(model.objects.order_by("pk").values()) for model in (own.Subscription, own.ProviderEvent)]


def test_new_events_are_copied_once_with_their_customers(customers: Cast, provider: Provider) -> None:
    received("evt_1", "cus_1", customers.org)
    assert tasks.mirror() == 1
    assert [each.id for each in Event.objects.all()] == ["evt_1"]
    assert [each.id for each in Customer.objects.all()] == ["cus_1"]
    received("evt_2", "cus_2", customers.other_org)
    provider.asked.clear()
    assert tasks.mirror() == 1
    assert {each.id for each in Event.objects.all()} == {"evt_1", "evt_2"}
    assert not [path for path in provider.paths() if path.endswith(("cus_1", "evt_1"))]
    provider.asked.clear()
    assert tasks.mirror() == 0
    assert provider.asked == []


def test_a_customer_with_many_events_is_copied_once(customers: Cast, provider: Provider) -> None:
    for number in range(5):
        provider.add(objects.event(f"evt_1{number}", objects.subscription("sub_1", "cus_1")))
        received(f"evt_1{number}", "cus_1", customers.org)
    assert tasks.mirror() == 5
    assert provider.paths().count("/v1/customers/cus_1") == 1


def test_a_run_ends_when_its_time_is_up_and_the_next_one_goes_on(
    customers: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LONGEST_RUN_S", -1.0)
    received("evt_1", "cus_1", customers.org)
    received("evt_2", "cus_2", customers.other_org)
    assert [tasks.mirror(), tasks.mirror(), tasks.mirror()] == [1, 1, 0]
    assert (runs.copy_customers(""), runs.copy_customers("cus_1")) == ("cus_1", "cus_2")
    assert {each.id for each in Event.objects.all()} == {"evt_1", "evt_2"}


@pytest.mark.parametrize("answer", AWAY)
def test_events_wait_while_the_provider_is_away_and_nothing_of_ours_changes(
    customers: Cast, provider: Provider, answer: tuple[int, bytes]
) -> None:
    received("evt_1", "cus_1", customers.org)
    before = own_rows()
    known = dict(provider.answers)
    provider.answers = dict.fromkeys(known, answer)
    assert tasks.mirror() == 0
    assert len(provider.asked) == 1, "one request is enough to know"
    assert not Event.objects.exists()
    assert own_rows() == before
    provider.answers = known
    assert tasks.mirror() == 1
    assert own_rows() == before


def test_a_provider_that_does_not_listen_is_away(
    customers: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    received("evt_1", "cus_1", customers.org)
    monkeypatch.setattr("stripe.api_base", "http://127.0.0.1:9")
    assert tasks.mirror() == 0
    assert not Event.objects.exists()


@pytest.mark.parametrize("body", [None, (200, b"{}"), (200, b'{"object": "charge", "id": "ch_1"}')])
def test_an_event_that_cannot_be_copied_is_asked_for_once_and_holds_up_no_other(
    customers: Cast, provider: Provider, body: tuple[int, bytes] | None
) -> None:
    provider.answers["/v1/events/evt_1"] = body
    received("evt_1", "cus_1", customers.org)
    received("evt_2", "cus_2", customers.other_org)
    assert tasks.mirror() == 2
    assert Event.objects.get(id="evt_1").data == {}
    assert Event.objects.get(id="evt_2").data["object"]["id"] == "sub_2"
    provider.asked.clear()
    assert tasks.mirror() == 0
    assert provider.asked == []


def test_old_events_and_those_of_a_reconciliation_or_of_no_organization_are_not_asked_for(
    customers: Cast, provider: Provider
) -> None:
    old = received("evt_1", "cus_1", customers.org)
    reconciled = received("evt_2", "cus_2", customers.other_org)
    received("evt_3", "cus_3")
    own.ProviderEvent.objects.filter(pk=old.pk).update(received_at=clock.now() - runs.ASKED_FOR - timedelta(seconds=1))
    own.ProviderEvent.objects.filter(pk=reconciled.pk).update(source=own.ProviderEvent.Source.RECONCILIATION)
    assert tasks.mirror() == 0
    assert provider.asked == []


def test_all_customers_are_copied_in_parts(
    customers: Cast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CUSTOMERS_OF_A_RUN", 1)
    messages: list[str] = []
    monkeypatch.setattr(tasks.mirror_customers, "delay", messages.append)
    tasks.mirror_customers()
    assert messages == ["cus_1"]
    assert [each.id for each in Customer.objects.all()] == ["cus_1"]
    tasks.mirror_customers("cus_1")
    tasks.mirror_customers("cus_2")
    assert messages == ["cus_1", "cus_2"]
    assert {each.id for each in Subscription.objects.all()} == {"sub_1", "sub_2"}


def test_a_customer_that_the_provider_does_not_know_holds_up_no_other(customers: Cast, provider: Provider) -> None:
    del provider.answers["/v1/customers/cus_1"]
    assert runs.copy_customers("") == "cus_2"
    assert [each.id for each in Customer.objects.all()] == ["cus_2"]


def test_the_run_of_all_customers_ends_while_the_provider_is_away(customers: Cast, provider: Provider) -> None:
    provider.answers = dict.fromkeys(provider.answers, (500, b"{}"))
    assert runs.copy_customers("") == ""
    assert len(provider.asked) == 1


def test_copies_end_with_the_organization(customers: Cast, provider: Provider) -> None:
    received("evt_1", "cus_1", customers.org)
    received("evt_2", "cus_2", customers.other_org)
    tasks.mirror()
    assert runs.remove_strangers() == 0
    organizations.delete_organization(actor=customers.user("owner"), organization=customers.org)
    waiting, _ = own.ProviderCancellation.objects.get_or_create(
        customer_id="cus_1", defaults={"organization_id": customers.org.pk}
    )
    assert runs.remove_strangers() == 0, "support sees the subscription until the provider has ended it"
    own.ProviderCancellation.objects.filter(pk=waiting.pk).update(done_at=clock.now())
    assert runs.remove_strangers() == 1
    assert [each.id for each in Customer.objects.all()] == ["cus_2"]
    assert [each.id for each in Subscription.objects.all()] == ["sub_2"]
    assert [each.id for each in Event.objects.all()] == ["evt_2"]
