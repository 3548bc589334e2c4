"""set_subscription, and what the states entitle to."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry
from billing import entitlements
from billing.models import Subscription
from billing.states import SubscriptionStatus, plan_state
from gateway.lib import clock
from tests.factories.api import Api
from tests.factories.cast import Cast


@pytest.fixture(autouse=True)
def _by_hand(settings: LazySettings) -> None:
    settings.BILLING_MODE = "manual"


def run(cast: Cast, status: str, *options: str) -> str:
    out = StringIO()
    call_command("set_subscription", str(cast.org.id), status, *options, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("status", list(SubscriptionStatus))
def test_which_states_are_active(cast: Cast, status: SubscriptionStatus) -> None:
    assert not entitlements.is_active(cast.org)
    assert run(cast, status.value) == f"Acme: {status.value}\n"
    expected = status.value in {"trialing", "active", "past_due"}
    assert entitlements.is_active(cast.org) is expected
    assert entitlements.has(cast.org, "serviceClients") is expected
    assert not entitlements.is_active(cast.other_org)
    events = [(row.event_type, row.actor_label) for row in AdminAuditEntry.objects.all()]
    event = "billing.activated" if expected else "billing.updated"  # it never was active
    assert events == ([] if status.value == "none" else [(event, "System (set_subscription)")])


@pytest.mark.parametrize("status", ["", "active", "canceled"])
def test_an_entitlement_is_looked_up_once(cast: Cast, status: str, django_assert_num_queries: Any) -> None:
    if status:
        run(cast, status)
    with django_assert_num_queries(1):
        assert entitlements.has(cast.org, "serviceClients") is (status == "active")
    assert not entitlements.has(cast.other_org, "serviceClients")


def test_events_are_changes(cast: Cast) -> None:
    """Active and lapsed are said when they begin; what changes within them is said as such, the same again not."""
    for status in ("trialing", "active", "active", "past_due", "canceled", "canceled", "unpaid", "active"):
        run(cast, status)
    run(cast, "active", "--service-clients", "no")
    run(cast, "active", "--service-clients", "no")
    events = AdminAuditEntry.objects.order_by("timestamp", "id").values_list("event_type", "metadata__status", "org_id")
    assert list(events) == [
        ("billing.activated", "trialing", cast.org.id),
        ("billing.updated", "active", cast.org.id),
        ("billing.updated", "past_due", cast.org.id),
        ("billing.lapsed", "canceled", cast.org.id),
        ("billing.updated", "unpaid", cast.org.id),
        ("billing.activated", "active", cast.org.id),
        ("billing.updated", "active", cast.org.id),
    ]


def test_grace_ends_after_a_week_and_does_not_begin_again(cast: Cast) -> None:
    run(cast, "past_due")
    eight_days_ago = clock.now() - timedelta(days=8)
    Subscription.objects.update(past_due_since=eight_days_ago)
    run(cast, "past_due")
    assert Subscription.objects.get().past_due_since == eight_days_ago
    assert not entitlements.is_active(cast.org)
    run(cast, "active")
    assert Subscription.objects.get().past_due_since is None
    now = clock.now()
    assert plan_state(SubscriptionStatus.PAST_DUE, now - timedelta(days=7), now) == "active"
    assert plan_state(SubscriptionStatus.PAST_DUE, None, now) == "lapsed"


def test_the_exception_for_service_client_keys(cast: Cast) -> None:
    run(cast, "canceled", "--service-clients", "yes")
    assert (entitlements.is_active(cast.org), entitlements.has(cast.org, "serviceClients")) == (False, True)
    run(cast, "active", "--service-clients", "no")
    assert (entitlements.is_active(cast.org), entitlements.has(cast.org, "serviceClients")) == (True, False)
    run(cast, "active")
    assert not entitlements.has(cast.org, "serviceClients"), "the exception is kept"
    run(cast, "active", "--service-clients", "plan")
    assert entitlements.has(cast.org, "serviceClients")
    with pytest.raises(ValueError, match="unknown entitlement"):
        entitlements.has(cast.org, "everything")  # type: ignore[arg-type]


def test_what_is_refused(cast: Cast) -> None:
    with pytest.raises(CommandError, match="no organization"):
        call_command("set_subscription", "no-id", "active")
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("set_subscription", str(cast.org.id), "paid")
    assert not Subscription.objects.exists()


def test_where_nobody_bills_everybody_is_active(cast: Cast, settings: LazySettings) -> None:
    settings.BILLING_MODE = "disabled"
    assert entitlements.is_active(cast.other_org)
    settings.BILLING_MODE = "stripe"
    assert not entitlements.is_active(cast.other_org)


def test_a_402_names_where_the_plan_is_renewed(api: Api, settings: LazySettings) -> None:
    path = "/orgs/{org}/teams"
    assert "portalUrl" not in api.send("admin", "POST", path, {"name": "Ops"}).json()
    settings.BILLING_PORTAL_URL = "https://pay.example/portal"
    answer = api.send("admin", "POST", path, {"name": "Ops"})
    assert (answer.status_code, answer.json()["portalUrl"]) == (402, "https://pay.example/portal")
    assert "portalUrl" not in api.send("member", "POST", path, {"name": "Ops"}).json()


def test_with_a_payment_provider_a_402_names_the_page_of_the_plan(api: Api, settings: LazySettings) -> None:
    settings.BILLING_MODE = "stripe"
    answer = api.send("admin", "POST", "/orgs/{org}/teams", {"name": "Ops"})
    assert answer.status_code == 402
    assert answer.json()["portalUrl"] == f"http://testserver/orgs/{api.cast.org.id}/billing"


def test_with_a_payment_provider_no_state_is_set_by_hand(cast: Cast, settings: LazySettings) -> None:
    run(cast, "active")
    settings.BILLING_MODE = "stripe"
    with pytest.raises(CommandError, match="provider decides about the subscription"):
        run(cast, "canceled")
    assert Subscription.objects.get().status == "active"


@pytest.mark.parametrize("mode", ["manual", "stripe"])
def test_the_exception_alone(cast: Cast, settings: LazySettings, mode: str) -> None:
    """The plan stays as it is."""
    run(cast, "canceled")
    settings.BILLING_MODE = mode
    for word, expected in (("yes", True), ("no", False), ("plan", False), ("plan", False)):
        out = StringIO()
        call_command("set_service_clients", str(cast.org.id), word, stdout=out)
        assert out.getvalue() == f"Acme: {word}\n"
        assert entitlements.has(cast.org, "serviceClients") is expected
        assert not entitlements.is_active(cast.org)
    assert Subscription.objects.get().status == "canceled"
    assert AdminAuditEntry.objects.filter(event_type="billing.updated").count() == 4
    with pytest.raises(CommandError, match="no organization"):
        call_command("set_service_clients", "no-id", "yes")
