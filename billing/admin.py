"""Subscriptions for support staff. An organization has no row until staff set one or an owner begins to pay."""

from django.contrib import admin

from billing.models import ProviderCancellation, ProviderEvent, Subscription
from gateway.lib.read_only_admin import ReadOnlyAdmin


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    fields = tuple(
        "organization status past_due_since period_end cancel_at_period_end service_clients customer_id subscription_id"
        " reconciled_at updated_at".split()
    )
    list_display = ("organization", "status", "period_end", "service_clients", "updated_at")
    list_filter = ("status",)
    list_select_related = ("organization",)
    search_fields = ("organization__name", "=organization__id", "=customer_id", "=subscription_id")


@admin.register(ProviderEvent)
class ProviderEventAdmin(ReadOnlyAdmin):
    fields = tuple("id kind created source organization customer_id subscription_id facts received_at".split())
    list_display = ("id", "kind", "organization", "created", "source", "received_at")
    list_filter = ("kind", "source")
    list_select_related = ("organization",)
    search_fields = ("=id", "=customer_id", "=subscription_id", "organization__name", "=organization__id")


@admin.register(ProviderCancellation)
class ProviderCancellationAdmin(ReadOnlyAdmin):
    fields = tuple("customer_id organization_id requested_at attempts next_attempt_at done_at last_error".split())
    list_display = ("customer_id", "organization_id", "requested_at", "attempts", "next_attempt_at", "done_at")
    search_fields = ("=customer_id", "=organization_id")
