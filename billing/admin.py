"""Subscriptions for support staff. An organization has no row until staff set one or an owner begins to pay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.dateformat import format as format_date
from django.utils.html import format_html, format_html_join

from billing.mode import has_provider
from billing.models import ProviderCancellation, ProviderEvent, Subscription
from billing.selectors import story
from gateway.lib.read_only_admin import ReadOnlyAdmin

# Events on a subscription's page; the list of all events has the rest.
SHOWN_EVENTS = 50
_MOMENT = "j M Y, H:i:s"
_OF_CANCELLATION = tuple("customer_id organization_id requested_at attempts next_attempt_at done_at last_error".split())


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnlyAdmin):
    fields = tuple(
        "organization status past_due_since period_end cancel_at_period_end service_clients customer_id subscription_id"
        " reconciled_at updated_at events".split()
    )
    readonly_fields = ("events",)
    list_display = ("organization", "status", "period_end", "service_clients", "updated_at")
    list_filter = ("status",)
    list_select_related = ("organization",)
    search_fields = ("organization__name", "=organization__id", "=customer_id", "=subscription_id")
    search_help_text = "Search by organization name or ID, or by the provider's customer or subscription ID."

    @admin.display(description="Provider events, newest first")
    def events(self, subscription: Subscription) -> str:
        rows = list(story(subscription.organization)[:SHOWN_EVENTS])
        if not rows:
            return "None yet"
        return format_html(
            '<table><thead><tr><th scope="col">Time (UTC)</th><th scope="col">Event</th><th scope="col">Source</th>'
            '<th scope="col">Facts</th></tr></thead><tbody>{}</tbody></table>',
            format_html_join(
                "", '<tr><td>{}</td><td><a href="{}">{}</a></td><td>{}</td><td>{}</td></tr>', map(_cells, rows)
            ),
        )


def _cells(event: ProviderEvent) -> tuple[str, str, str, str, str]:
    address = reverse("admin:billing_providerevent_change", args=[event.pk])
    return format_date(event.created, _MOMENT), address, event.kind, event.get_source_display(), _in_words(event.facts)


def _in_words(facts: Mapping[str, Any]) -> str:
    """The event's own page has all facts."""
    told = facts.get("snapshot") or {}
    parts = [told.get("status", "")]
    if "previous_status" in facts:
        parts.append(f"was {facts['previous_status']}")
    if end := told.get("period_end"):
        verb = "ends" if told.get("is_ending") else "period ends"
        parts.append(f"{verb} {format_date(datetime.fromtimestamp(end, UTC), _MOMENT)}")
    parts += [str(facts[name]) for name in ("invoice_id", "checkout_session_id") if name in facts]
    return ", ".join(part for part in parts if part)


@admin.register(ProviderEvent)
class ProviderEventAdmin(ReadOnlyAdmin):
    ordering = ("-received_at", "-id")
    fields = tuple("id kind created source organization customer_id subscription_id facts received_at".split())
    list_display = ("id", "kind", "organization", "created", "source", "received_at")
    list_filter = ("kind", "source")
    list_select_related = ("organization",)
    search_fields = ("=id", "=customer_id", "=subscription_id", "organization__name", "=organization__id")
    search_help_text = "Search by the provider's event, customer or subscription ID, or by organization name or ID."


@admin.register(ProviderCancellation)
class ProviderCancellationAdmin(ReadOnlyAdmin):
    ordering = ("-requested_at", "-id")
    fields = _OF_CANCELLATION
    list_display = _OF_CANCELLATION
    search_fields = ("=customer_id", "=organization_id")
    search_help_text = "Search by the provider's customer ID, or the ID of the deleted organization."


if has_provider():
    from billing.mirror import admin_pages  # noqa: F401
