"""Support staff can read every table, and change none by a form."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin

from gateway.lib.read_only_admin import ReadOnlyAdmin

# Models that hold nothing but secrets, live for minutes, or belong to the framework.
NOT_SHOWN = {
    "admin.LogEntry",
    "auth.Permission",
    "contenttypes.ContentType",
    "coordination.PendingBump",
    "credentials.VendorRevocation",
    "credentials.VendorSignIn",
    "keys.KeyHolder",
    "mail.OptOut",
    "oauth_ext.AuthorizationRequest",
    "oauth_ext.IDToken",
    "oauth_ext.UsedAssertion",
    "oauth_ext.UserCodeMiss",
    "orgs.BrowserSession",
    "orgs.KnownBrowser",
    "orgs.UsedLogoutToken",
    "sessions.Session",
    "web.IdempotencyRecord",
}
# Behind the customers, subscriptions and events that are shown; some have no rows at all.
if settings.BILLING_MODE == "stripe":
    NOT_SHOWN |= {
        f"djstripe.{name}"
        for name in (
            *("Account", "APIKey", "Coupon", "Feature", "File", "PaymentMethod", "Price", "Product", "ProductFeature"),
            *("SubscriptionItem", "TaxRate"),
        )
    }
HIDDEN_COLUMNS = ("sealed", "secret", "wrapped", "sha256", "hash", "checksum", "token_key", "state", "session", "code_")

# Times of a rotation; they hold no secret.
SHOWN_TIMES = {"secret_rotated_at", "previous_secret_ends_at"}


def shown_models() -> list[type]:
    return sorted(admin.site._registry, key=lambda model: model._meta.label)


def test_every_table_is_there() -> None:
    missing = {model._meta.label for model in apps.get_models()} - {model._meta.label for model in shown_models()}  # type: ignore[attr-defined]
    assert missing == NOT_SHOWN


@pytest.mark.parametrize("model", shown_models(), ids=lambda model: model._meta.label)
def test_it_can_be_searched_and_not_edited(model: type) -> None:
    page = admin.site._registry[model]
    assert isinstance(page, ReadOnlyAdmin)
    assert page.search_fields
    for method in ("has_add_permission", "has_change_permission", "has_delete_permission"):
        assert getattr(type(page), method) is getattr(ReadOnlyAdmin, method)


@pytest.mark.parametrize("model", shown_models(), ids=lambda model: model._meta.label)
def test_no_column_of_secrets_is_shown(model: type) -> None:
    page = admin.site._registry[model]
    fields = [str(name) for name in (page.fields or page.readonly_fields or [])]
    named = [*fields, *map(str, page.list_display)]
    assert fields or model._meta.app_label == "audit", "columns are named one by one"  # type: ignore[attr-defined]
    named = [name for name in named if name not in SHOWN_TIMES]
    assert [name for name in named if any(word in name for word in HIDDEN_COLUMNS)] == []
