"""Subscriptions for support staff. An organization has no row until staff set one."""

from django.contrib import admin

from billing.models import Subscription
from gateway.lib.read_only_admin import ReadOnlyAdmin


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    fields = ("organization", "status", "past_due_since", "service_clients", "updated_at")
    list_display = ("organization", "status", "service_clients", "updated_at")
    list_filter = ("status",)
    list_select_related = ("organization",)
    search_fields = ("organization__name", "=organization__id")
