"""No secret reaches dj-stripe or its tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO

import pytest
import stripe
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from djstripe.models import APIKey, Customer, Event
from djstripe.settings import djstripe_settings

from billing.mirror import contents, copies
from billing.mirror.http_client import KEY_NAME, ReadingHTTPClient
from tests.e2e.secret_search import Hoard, database_places
from tests.stripe_mode.provider import CLIENT_SECRET, Provider

pytestmark = pytest.mark.django_db
KEY_HEADER = {"Authorization": f"Bearer {KEY_NAME}"}


def everything() -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found[table] = cursor.fetchall()
    return found


def test_no_table_holds_a_secret_after_all_was_copied(provider: Provider) -> None:
    for name in ("1", "2"):
        copies.copy_customer(f"cus_{name}")
        copies.copy_event(f"evt_{name}")
    printed = StringIO()
    call_command("djstripe_sync_models", stdout=printed, stderr=printed)
    hoard = Hoard()
    hoard.add("the key", settings.STRIPE_SECRET_KEY)
    hoard.add("the webhook's secret", settings.STRIPE_WEBHOOK_SECRET)
    hoard.add("a client secret", CLIENT_SECRET)
    places = list(database_places(everything()))
    assert any(b"cus_1@example.com" in content for place, content in places if place == "table djstripe_customer")
    assert any(b"sub_1" in content for place, content in places if place == "table djstripe_event")
    assert hoard.found_in([*places, ("output", printed.getvalue().encode())]) == []


def test_the_library_does_not_know_the_key() -> None:
    assert djstripe_settings.get_api_keys() == [KEY_NAME]
    assert djstripe_settings.get_default_api_key(livemode=True) == KEY_NAME
    assert Customer.sync_from_stripe_data.__func__.__defaults__ == (None,)
    assert Customer.api_list.__func__.__defaults__ == (KEY_NAME,)
    assert stripe.api_key is None


@pytest.mark.parametrize(
    "write",
    [
        lambda key: APIKey.objects.create(secret=key, livemode=False, type="secret"),
        lambda key: APIKey.objects.bulk_create([APIKey(secret=key, livemode=False, type="secret")]),
        lambda key: APIKey.objects.get_or_create_by_api_key(key),
    ],
)
def test_the_database_refuses_a_key(write: Callable[[str], object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        write(settings.STRIPE_SECRET_KEY)
    assert not APIKey.objects.exists()


def test_a_row_without_a_key_cannot_get_one() -> None:
    row = APIKey.objects.create(secret="", livemode=False, type="secret")
    with pytest.raises(IntegrityError), transaction.atomic():
        APIKey.objects.filter(pk=row.pk).update(secret=settings.STRIPE_SECRET_KEY)


def test_there_is_no_table_for_secrets_of_webhooks() -> None:
    assert "djstripe_webhookendpoint" not in connection.introspection.table_names()
    assert "djstripe_webhookeventtrigger" not in connection.introspection.table_names()


@pytest.mark.parametrize(
    "request_of_the_library",
    [
        lambda: stripe.Customer.create(email="a@example.com", api_key=KEY_NAME),
        lambda: stripe.Customer.delete("cus_1", api_key=KEY_NAME),
        lambda: stripe.Customer.retrieve("cus_1", api_key=settings.STRIPE_SECRET_KEY),
        lambda: ReadingHTTPClient().request("get", f"{stripe.api_base}@example.com/v1/customers", KEY_HEADER),
        lambda: ReadingHTTPClient().request("get", "https://api.stripe.com/v1/customers", KEY_HEADER),
        lambda: stripe.File.create(file=b"x", purpose="dispute_evidence", api_key=KEY_NAME),
    ],
    ids=["create", "delete", "another key", "another host", "another address", "upload"],
)
def test_the_library_sends_no_other_request(provider: Provider, request_of_the_library: Callable[[], object]) -> None:
    with pytest.raises(stripe.APIConnectionError, match="The mirror"):
        request_of_the_library()
    assert provider.asked == []


def test_a_key_that_an_operator_types_is_not_used(provider: Provider) -> None:
    printed = StringIO()
    typed = "sk_test_" + "AnotherKeyThatAnOperatorTypes"
    call_command("djstripe_sync_models", "Customer", api_keys=[typed], stdout=printed, stderr=printed)
    assert "The mirror uses STRIPE_SECRET_KEY only" in printed.getvalue()
    assert provider.asked == []


def test_secrets_inside_objects_are_removed_at_any_depth() -> None:
    given = {"a": [{"client_secret": "x", "b": {"secret": "y", "c": 1}}], "client_secret": None}
    assert contents.without_secrets(given) == {
        "a": [{"client_secret": None, "b": {"secret": None, "c": 1}}],
        "client_secret": None,
    }
    for name in ("hosted_invoice_url", "invoice_pdf", "receipt_url"):
        assert contents.without_secrets({"object": {name: "https://invoice.example/i/1", "id": "in_1"}}) == {
            "object": {name: None, "id": "in_1"}
        }
    row = Event.objects.create(id="evt_9", type="x", data=given, stripe_data=given)
    assert '"x"' not in json.dumps([row.data, row.stripe_data])
