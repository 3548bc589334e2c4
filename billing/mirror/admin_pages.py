"""Copies of the provider's objects for support staff. Nothing here asks the provider or changes a row."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from djstripe.models import Customer, Event, Subscription

from billing import models as billing
from gateway.lib.read_only_admin import ReadOnlyAdmin


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    fields = ("id", "organization", "name", "email", "deleted", "livemode", "created", "djstripe_updated", "copy")
    list_display = ("id", "email", "livemode", "created", "djstripe_updated")
    list_filter = ("livemode",)
    search_fields = ("=id", "email")

    def organization(self, customer: Customer) -> str:
        """The name, or a dash for a customer of none."""
        row = billing.Subscription.objects.select_related("organization").filter(customer_id=customer.id).first()
        return row.organization.name if row else "-"

    def copy(self, customer: Customer) -> SafeString:
        return indented(customer.stripe_data)


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    fields = ("id", "customer", "status", "cancel_at_period_end", "livemode", "created", "djstripe_updated", "copy")
    list_display = ("id", "customer", "status", "created", "djstripe_updated")
    list_select_related = ("customer",)
    search_fields = ("=id", "=customer__id", "customer__email")

    def copy(self, subscription: Subscription) -> SafeString:
        return indented(subscription.stripe_data)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    fields = ("id", "type", "api_version", "livemode", "created", "djstripe_updated", "copy")
    list_display = ("id", "type", "created")
    list_filter = ("type",)
    search_fields = ("=id", "=data__object__customer", "=data__object__id")

    def copy(self, event: Event) -> SafeString:
        return indented(event.data)


def indented(value: Any) -> SafeString:
    """JSON on lines, escaped."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, sort_keys=True))
