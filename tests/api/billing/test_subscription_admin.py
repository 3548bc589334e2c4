"""The story of a subscription for support staff: the provider's events, newest first, and waiting cancellations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client as Browser
from django.urls import reverse

from billing.models import ProviderCancellation, ProviderEvent, Subscription
from orgs.models import Organization
from tests.factories.cast import Cast, make_person

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
KINDS = ("customer.subscription.created", "invoice.payment_failed", "customer.subscription.deleted")


@pytest.fixture
def staff(cast: Cast) -> Browser:
    """Support staff who may look at billing and at nothing else."""
    person = make_person("support")
    person.is_staff = True
    person.save()
    person.is_superuser = True
    person.save()
    browser = Browser()
    browser.force_login(person, backend="orgs.signin.backend.IdentityBackend")
    return browser


def add_story(organization: Organization, **facts: object) -> Subscription:
    """Three events, an hour apart, that arrived in another order."""
    customer = f"cus_{organization.name}"
    for hours in (2, 0, 1):
        ProviderEvent.objects.create(
            id=f"evt_{organization.name}_{hours}",
            kind=KINDS[hours],
            created=NOON + timedelta(hours=hours),
            customer_id=customer,
            organization=organization,
            facts=facts,
        )
    return Subscription.objects.create(organization=organization, status="canceled", customer_id=customer)


def page(staff: Browser, name: str, *args: object) -> str:
    answer = staff.get(reverse(f"admin:billing_{name}", args=args))
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_events_of_a_subscription_newest_first(cast: Cast, staff: Browser) -> None:
    end = int(NOON.timestamp())
    snapshot = {"status": "canceled", "is_ending": True, "period_end": end}
    row = add_story(cast.org, snapshot=snapshot, previous_status="past_due", invoice_id="<script>alert(1)</script>")
    add_story(cast.other_org, snapshot={"status": "active"})
    shown = page(staff, "subscription_change", row.pk)
    places = [shown.index(f"evt_Acme_{hours}/change") for hours in (2, 1, 0)]
    assert places == sorted(places)
    assert "10 Mar 2026, 14:00:00" in shown
    assert "customer.subscription.deleted" in shown
    assert "<td>canceled, was past_due, ends 10 Mar 2026, 12:00:00, &lt;script&gt;alert(1)" in shown
    assert "<script>alert" not in shown
    assert "evt_Globex" not in shown


def test_a_subscription_that_no_provider_knows(cast: Cast, staff: Browser) -> None:
    row = Subscription.objects.create(organization=cast.org, status="active")
    add_story(cast.other_org)
    shown = page(staff, "subscription_change", row.pk)
    assert "None yet" in shown
    assert "evt_Globex" not in shown


def test_cancellations_are_found_after_the_organization_is_gone(cast: Cast, staff: Browser) -> None:
    for name, done_at in (("cus_waiting", None), ("cus_done", NOON)):
        ProviderCancellation.objects.create(
            customer_id=name, organization_id=cast.org.id, done_at=done_at, last_error="" if done_at else "timed out"
        )
    listed = page(staff, "providercancellation_changelist")
    assert "timed out" in listed
    assert {name in listed for name in ("cus_waiting", "cus_done")} == {True}
    found = staff.get(reverse("admin:billing_providercancellation_changelist"), {"q": "cus_waiting"})
    assert [row.customer_id for row in found.context["cl"].result_list] == ["cus_waiting"]


@pytest.mark.parametrize("model", ["subscription", "providerevent", "providercancellation"])
def test_staff_may_only_look(cast: Cast, staff: Browser, model: str) -> None:
    row = add_story(cast.org)
    ProviderCancellation.objects.create(customer_id="cus_1", organization_id=cast.org.id)
    key = {"subscription": row.pk, "providerevent": "evt_Acme_1"}.get(model) or ProviderCancellation.objects.get().pk
    assert 'name="_save"' not in page(staff, f"{model}_change", key)
    assert staff.post(reverse(f"admin:billing_{model}_change", args=[key]), {}).status_code == 403
    assert staff.get(reverse(f"admin:billing_{model}_add")).status_code == 403
    assert staff.post(reverse(f"admin:billing_{model}_delete", args=[key]), {"post": "yes"}).status_code == 403
    for who in ("owner", "stranger"):
        answer = cast.client(who).get(reverse(f"admin:billing_{model}_change", args=[key]))
        assert answer.status_code == 302
