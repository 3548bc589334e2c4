"""POST /api/webhooks/stripe: what the provider says, and everything that only looks like it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.conf import LazySettings
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from billing import entitlements, provider_events
from billing.models import ProviderEvent, Subscription
from gateway.coordination.rules import Rule
from gateway.lib import clock
from tests.factories.billing import (
    PATH,
    SECRET,
    checkout_session,
    deliver,
    event,
    invoice,
    signature,
    subscription,
    told,
)
from tests.factories.cast import Cast

pytestmark = pytest.mark.usefixtures("by_provider")
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture
def paying(cast: Cast) -> Cast:
    """Both organizations have a customer at the provider, and neither has a subscription."""
    for number, organization in enumerate((cast.org, cast.other_org), 1):
        Subscription.objects.create(organization_id=organization.pk, customer_id=f"cus_{number}")
    return cast


@pytest.fixture
def noon() -> Iterator[None]:
    """Time stands still at a whole second, as the provider counts."""
    with time_machine.travel(NOON, tick=False):
        yield


def said(answer: Any) -> tuple[int, Any]:
    """Status and error code, or the whole body of a success."""
    found = json.loads(answer.content)
    return answer.status_code, found.get("error", found)


RECEIVED = (200, {"received": True})


def test_a_plan_begins_for_the_one_who_paid(paying: Cast) -> None:
    assert not entitlements.is_active(paying.org)
    assert said(deliver(told("active", end=2_000_000_000))) == RECEIVED
    assert entitlements.is_active(paying.org)
    assert not entitlements.is_active(paying.other_org)
    row = Subscription.objects.get(organization=paying.org)
    assert (row.status, row.subscription_id, row.cancel_at_period_end) == ("active", "sub_1", False)
    assert row.period_end == datetime.fromtimestamp(2_000_000_000, UTC)
    entry = AdminAuditEntry.objects.get()
    assert (entry.event_type, entry.org_id, entry.actor_label) == (
        "billing.activated",
        paying.org.id,
        "System (payment provider)",
    )
    assert entry.metadata["providerEvent"] == ProviderEvent.objects.get().id


def test_a_life_of_events(paying: Cast) -> None:
    """Each step takes effect at once, and is told once."""
    now = int(clock.now().timestamp())
    steps = [
        (event("customer.subscription.created", subscription("incomplete"), created=now), "incomplete", False),
        (event("invoice.paid", invoice(), created=now), "active", True),
        (told("active", created=now, previous={"status": "incomplete"}), "active", True),
        (event("invoice.payment_failed", invoice("in_2"), created=now + 1), "active", True),
        (told("past_due", created=now + 1, previous={"status": "active"}), "past_due", True),
        (event("invoice.paid", invoice("in_2"), created=now + 2), "active", True),
        (told("active", is_ending=True, created=now + 3, previous={"cancel_at_period_end": False}), "active", True),
        (event("customer.subscription.deleted", subscription("canceled"), created=now + 4), "canceled", False),
    ]
    for found, status, is_active in steps:
        assert said(deliver(found)) == RECEIVED
        assert Subscription.objects.get(organization=paying.org).status == status
        assert entitlements.is_active(paying.org) is is_active
        assert not entitlements.is_active(paying.other_org)
    events = AdminAuditEntry.objects.order_by("timestamp", "id").values_list("event_type", "metadata__status")
    assert list(events) == [
        ("billing.updated", "incomplete"),
        ("billing.activated", "active"),
        ("billing.updated", "past_due"),
        ("billing.updated", "active"),
        ("billing.updated", "active"),
        ("billing.lapsed", "canceled"),
    ]


def test_a_second_delivery_is_received_and_changes_nothing(paying: Cast) -> None:
    found = told("active")
    assert [said(deliver(found)) for _ in range(3)] == [RECEIVED] * 3
    assert ProviderEvent.objects.count() == AdminAuditEntry.objects.count() == 1


def test_an_older_event_that_comes_later_changes_nothing(paying: Cast) -> None:
    now = int(clock.now().timestamp())
    deliver(event("customer.subscription.deleted", subscription("canceled"), created=now))
    deliver(told("active", created=now - 60))
    assert Subscription.objects.get(organization=paying.org).status == "canceled"
    assert ProviderEvent.objects.count() == 2


@pytest.mark.parametrize("days", [7, 8])
def test_the_grace_period_counts_from_the_first_failure(paying: Cast, days: int, noon: None) -> None:
    now = int(clock.now().timestamp())
    failed = now - days * 86_400
    deliver(event("invoice.payment_failed", invoice(), created=failed))
    deliver(told("past_due", created=failed + 60, previous={"status": "active"}))
    deliver(event("invoice.payment_failed", invoice(), created=now - 60))
    assert entitlements.is_active(paying.org) is (days == 7)


def test_events_before_the_customer_is_known_count_from_then_on(cast: Cast) -> None:
    """The row was lost; a completed checkout of ours says whose customer it is."""
    assert said(deliver(told("active", customer="cus_new"))) == RECEIVED
    assert not Subscription.objects.exists()
    assert ProviderEvent.objects.get().organization is None
    completed = event("checkout.session.completed", checkout_session(str(cast.org.id), customer="cus_new"))
    assert said(deliver(completed)) == RECEIVED
    assert entitlements.is_active(cast.org)
    assert not entitlements.is_active(cast.other_org)
    assert ProviderEvent.objects.filter(organization=cast.org).count() == 2


def test_a_completed_checkout_gives_no_state(paying: Cast) -> None:
    Subscription.objects.filter(organization=paying.org).update(
        checkout_session_id="cs_1", checkout_began_at=clock.now()
    )
    assert said(deliver(event("checkout.session.completed", checkout_session(str(paying.org.id))))) == RECEIVED
    row = Subscription.objects.get(organization=paying.org)
    assert (row.status, row.checkout_session_id) == ("none", "")
    assert not AdminAuditEntry.objects.exists()


def test_an_organization_that_has_a_customer_gets_no_other(paying: Cast) -> None:
    deliver(event("checkout.session.completed", checkout_session(str(paying.org.id), customer="cus_evil")))
    deliver(told("active", customer="cus_evil"))
    assert Subscription.objects.get(organization=paying.org).customer_id == "cus_1"
    assert not entitlements.is_active(paying.org)


def test_a_customer_stays_with_its_organization(paying: Cast) -> None:
    """A session that names another organization binds nothing."""
    deliver(event("checkout.session.completed", checkout_session(str(paying.other_org.id), customer="cus_1")))
    deliver(told("active", customer="cus_1"))
    assert (entitlements.is_active(paying.org), entitlements.is_active(paying.other_org)) == (True, False)


@pytest.mark.parametrize(
    "reference", ["", "no-id", "00000000-0000-4000-8000-000000000000"], ids=["none", "no id", "unknown"]
)
def test_a_checkout_of_nobody(cast: Cast, reference: str) -> None:
    assert said(deliver(event("checkout.session.completed", checkout_session(reference)))) == RECEIVED
    assert not Subscription.objects.exists()


def test_a_payment_link_binds_no_organization(cast: Cast) -> None:
    """Its reference is written by the buyer; only our own sessions have our metadata."""
    link = checkout_session(str(cast.org.id), customer="cus_evil", metadata={})
    assert said(deliver(event("checkout.session.completed", link))) == RECEIVED
    assert not Subscription.objects.exists()


IGNORED = {
    "of another kind": lambda: event("payout.paid", {"id": "po_1"}),
    "of a connected account": lambda: told("active", account="acct_other"),
    "of live mode": lambda: told("active", livemode=True),
    "of no mode": lambda: told("active", livemode=None),
}


@pytest.mark.parametrize("name", IGNORED)
def test_events_that_are_not_ours_are_received_and_not_stored(paying: Cast, name: str) -> None:
    assert said(deliver(IGNORED[name]())) == RECEIVED
    assert not ProviderEvent.objects.exists()
    assert not entitlements.is_active(paying.org)


def test_with_a_live_key_events_of_test_mode_are_not_ours(paying: Cast, settings: LazySettings) -> None:
    settings.STRIPE_SECRET_KEY = "sk_live_1"
    deliver(told("active"))
    assert not entitlements.is_active(paying.org)
    deliver(told("active", livemode=True))
    assert entitlements.is_active(paying.org)


def test_an_event_of_an_unknown_customer_waits_for_its_organization(paying: Cast) -> None:
    assert said(deliver(told("active", customer="cus_unknown"))) == RECEIVED
    assert ProviderEvent.objects.get().organization is None
    assert not AdminAuditEntry.objects.exists()


@pytest.mark.parametrize("version", ["2020-08-27", "2024-06-20", "2027-01-01.elm", None])
def test_events_of_other_api_versions_are_understood(paying: Cast, version: str | None) -> None:
    old = version is not None and version < "2025"
    deliver(told("past_due", is_old=old, end=2_000_000_000, api_version=version, created=1_700_000_000))
    deliver(event("invoice.paid", invoice(is_old=old), api_version=version, created=1_700_000_001))
    row = Subscription.objects.get(organization=paying.org)
    assert (row.status, row.period_end) == ("active", datetime.fromtimestamp(2_000_000_000, UTC))


def test_two_secrets_while_one_replaces_the_other(paying: Cast, settings: LazySettings) -> None:
    settings.STRIPE_WEBHOOK_SECRETS = ("whsec_next", SECRET)
    assert said(deliver(told("active"))) == RECEIVED
    assert said(deliver(told("active"), secret="whsec_next")) == RECEIVED
    settings.STRIPE_WEBHOOK_SECRETS = ("whsec_next",)
    assert said(deliver(told("active"))) == (400, "invalid_signature")


@pytest.mark.parametrize("age_s", [301, -301])
def test_a_signature_of_another_time_is_refused(paying: Cast, age_s: int, noon: None) -> None:
    """Recorded and sent again later, or made for the future."""
    now = int(clock.now().timestamp())
    assert said(deliver(told("active"), at=now - age_s)) == (400, "invalid_signature")
    assert said(deliver(told("active"), at=now - age_s + (1 if age_s > 0 else -1))) == RECEIVED


def test_a_recorded_request_is_worth_nothing(paying: Cast) -> None:
    with time_machine.travel(NOON, tick=False) as traveller:
        body = json.dumps(told("active")).encode()
        header = signature(body)
        assert said(deliver(body, header=header)) == RECEIVED
        assert said(deliver(body, header=header)) == RECEIVED
        traveller.shift(timedelta(minutes=6))
        assert said(deliver(body, header=header)) == (400, "invalid_signature")
    assert ProviderEvent.objects.count() == 1


@pytest.mark.parametrize("header", ["", "v1=abc", "t=1,v1=abc", "\u00e9", "t=99999999999999999999,v1=a"])
def test_nothing_is_read_without_a_signature(paying: Cast, header: str) -> None:
    assert said(deliver(told("active"), header=header)) == (400, "invalid_signature")
    assert said(deliver(b"{", header=header)) == (400, "invalid_signature")
    assert not ProviderEvent.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"\xff",
        b'{"type": "x", "type": "y", "livemode": false}',
        b'{"livemode": false}',
        b'{"livemode": false, "type": "invoice.paid"}',
        b'{"livemode": false, "type": "invoice.paid", "data": {"object": []}}',
        b'{"livemode": false, "type": "invoice.paid", "data": {"object": {}}, "id": "evt_1", "created": "soon"}',
        b'{"a":' * 100 + b"1" + b"}" * 100,
    ],
)
def test_what_is_signed_and_no_event(paying: Cast, body: bytes) -> None:
    assert said(deliver(body)) == (400, "invalid_event")
    assert not ProviderEvent.objects.exists()


def test_an_event_from_the_future_is_refused(paying: Cast, settings: LazySettings, noon: None) -> None:
    """It would outrank everything until then. In test mode the provider's clock may be anywhere."""
    settings.STRIPE_SECRET_KEY = "sk_live_1"
    now = int(clock.now().timestamp())
    assert said(deliver(told("active", livemode=True, created=now + 301))) == (400, "invalid_event")
    assert said(deliver(told("past_due", livemode=True, created=now + 300))) == RECEIVED
    settings.STRIPE_SECRET_KEY = "sk_test_1"
    assert said(deliver(told("active", created=now + 86_400))) == RECEIVED
    assert entitlements.is_active(paying.org)


@pytest.mark.parametrize("size", [512 * 1024, 512 * 1024 + 1, 1024 * 1024])
def test_the_size_of_an_event(paying: Cast, size: int) -> None:
    found = {**told("active"), "padding": ""}
    found["padding"] = "x" * (size - len(json.dumps(found)))
    body = json.dumps(found).encode()
    assert len(body) == size
    expected = RECEIVED if size <= 512 * 1024 else (413, "body_too_large")
    assert said(deliver(body)) == expected
    assert entitlements.is_active(paying.org) is (expected == RECEIVED)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_only_post(paying: Cast, method: str) -> None:
    answer = Browser().generic(method, PATH, b"", headers={"Stripe-Signature": signature(b"")})
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


@pytest.mark.parametrize("mode", ["disabled", "manual"])
def test_without_a_provider_it_is_shut(paying: Cast, settings: LazySettings, mode: str) -> None:
    settings.BILLING_MODE = mode
    assert said(deliver(told("active"))) == (503, "billing_unavailable")
    assert not ProviderEvent.objects.exists()


def test_without_a_secret_nothing_is_believed(paying: Cast, settings: LazySettings) -> None:
    settings.STRIPE_WEBHOOK_SECRETS = ()
    assert said(deliver(told("active"), secret="")) == (400, "invalid_signature")


def test_a_failing_effect_leaves_nothing_and_is_tried_again(paying: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    found = told("active")

    def failing(*args: object, **more: object) -> None:
        raise RuntimeError("as a fault of ours")

    with monkeypatch.context() as patch:
        patch.setattr(provider_events, "save_change", failing)
        body = json.dumps(found).encode()
        answer = Browser(raise_request_exception=False).generic(
            "POST", PATH, body, content_type="application/json", headers={"Stripe-Signature": signature(body)}
        )
        assert said(answer) == (500, "internal_error")
    assert not ProviderEvent.objects.exists()
    assert not entitlements.is_active(paying.org)
    assert said(deliver(found)) == RECEIVED
    assert entitlements.is_active(paying.org)


def test_an_event_needs_no_session_and_gives_none(paying: Cast) -> None:
    answer = deliver(told("active"))
    assert not answer.cookies
    assert answer["Cache-Control"] == "no-store"
    assert answer["RateLimit"]


def test_a_burst_has_a_window_of_its_own(paying: Cast, settings: LazySettings) -> None:
    """It takes nothing from the people behind the same address, and they take nothing from it."""
    assert settings.PROVIDER_EVENTS.limit >= 5_000
    settings.BACKSTOP = Rule(f"backstop {uuid4()}", limit=1, window_s=60)
    settings.PROVIDER_EVENTS = Rule(f"events {uuid4()}", limit=3, window_s=60)
    assert Browser().get("/api/orgs", REMOTE_ADDR="10.7.0.1").status_code == 401
    assert Browser().get("/api/orgs", REMOTE_ADDR="10.7.0.1").status_code == 429
    found = told("active")
    assert [deliver(found).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = deliver(found)
    assert int(refused["Retry-After"]) > 0
    assert said(deliver(found, address="10.7.0.2")) == RECEIVED


def test_an_event_of_a_deleted_organization_is_harmless(paying: Cast) -> None:
    deliver(told("active"))
    paying.org.delete()
    assert said(deliver(told("canceled"))) == RECEIVED
    assert set(ProviderEvent.objects.values_list("organization", flat=True)) == {None}


def test_events_that_nobody_claims_are_removed_after_a_while(paying: Cast) -> None:
    deliver(told("active"))
    deliver(told("active", customer="cus_unknown"))
    assert provider_events.prune(clock.now() - timedelta(days=1)) == 0
    assert provider_events.prune(clock.now() + timedelta(days=1)) == 1
    assert ProviderEvent.objects.get().organization == paying.org
