"""Both logs for staff, to read and search."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin
from django.core.paginator import Paginator

from audit.models import (
    AdminAuditEntry,
    DeliveryHour,
    LogDestination,
    PrunedLog,
    RefusedRecord,
    RequestAuditEntry,
    Seal,
    SentHour,
    StreamCursor,
    StreamEra,
    UsageCount,
    UsageDay,
    UsageDuration,
    UsageLabel,
)
from audit.usage.row_ids import of_organization
from gateway.lib import ids
from gateway.lib.read_only_admin import ReadOnlyAdmin

MAX_COUNTED = 10_000  # bounds a page's count: an exact one reads every row of the table


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[:MAX_COUNTED].count())


class LogAdmin(ReadOnlyAdmin):
    ordering = ("-id",)  # ids are time-ordered and have the only index over all organizations
    paginator = CappedPaginator


@admin.register(RequestAuditEntry)
class RequestAuditAdmin(LogAdmin):
    list_display = tuple("timestamp org_id user_label vendor tool source status error_code count duration_ms".split())
    list_filter = ("source", "status")
    search_fields = ("=org_id", "user_id__exact", "vendor__exact", "tool__exact", "request_id__exact")
    search_help_text = "Search by exact organization ID, user ID, vendor, tool or request ID."


@admin.register(AdminAuditEntry)
class AdminAuditAdmin(LogAdmin):
    list_display = ("timestamp", "org_id", "actor_label", "event_type", "target_label")
    list_filter = ("event_type",)
    search_fields = ("=org_id", "actor_id__exact", "target_id__exact", "event_type__exact", "request_id__exact")
    search_help_text = "Search by exact organization ID, actor ID, target ID, event type or request ID."


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    ordering = ("-id",)
    list_display = fields = ("org_id", "log", "number", "rows", "position", "row_id", "made_at")
    search_fields = ("=org_id",)
    search_help_text = "An organization's id."


@admin.register(StreamCursor)
class StreamCursorAdmin(ReadOnlyAdmin):
    list_display = fields = ("name", "log", "position", "row_id", "reached_at")
    search_fields = ("name",)


@admin.register(StreamEra)
class StreamEraAdmin(ReadOnlyAdmin):
    list_display = fields = ("identity", "start")
    search_fields = ("identity",)


@admin.register(PrunedLog)
class PrunedLogAdmin(ReadOnlyAdmin):
    list_display = fields = ("log", "before")
    search_fields = ("log",)


@admin.register(LogDestination)
class LogDestinationAdmin(ReadOnlyAdmin):
    """The address is shown as far as its host: a path may hold a secret."""

    ordering = ("org_id", "label", "id")
    list_display = ("org_id", "label", "platform", "host", "enabled", "status", "last_delivery_at", "last_error")
    fields = tuple(
        "org_id label platform host enabled status failures last_error last_attempt_at last_delivery_at next_attempt_at"
        " skip_before delivered refused skipped created_at".split()
    )
    list_filter = ("platform", "status", "enabled")
    search_fields = ("=id", "=org_id", "label__icontains")
    search_help_text = "Search by destination ID, organization ID or part of a label."

    @admin.display(description="Host")
    def host(self, destination: LogDestination) -> str:
        return urlsplit(destination.endpoint_url).netloc


@admin.register(DeliveryHour)
class DeliveryHourAdmin(ReadOnlyAdmin):
    ordering = ("-hour", "id")
    list_display = fields = ("destination", "hour", "delivered", "refused", "skipped", "failures", "sent_bytes")
    list_select_related = ("destination",)
    search_fields = ("=destination__id", "=destination__org_id")
    search_help_text = "Search by destination or organization ID."


@admin.register(SentHour)
class SentHourAdmin(ReadOnlyAdmin):
    ordering = ("-hour", "id")
    list_display = fields = ("org_id", "hour", "sent_bytes")
    search_fields = ("=org_id",)
    search_help_text = "An organization's id."


@admin.register(RefusedRecord)
class RefusedRecordAdmin(ReadOnlyAdmin):
    ordering = ("-id",)
    list_display = fields = ("destination", "log", "row_id", "reason", "refused_at")
    list_select_related = ("destination",)
    search_fields = ("=destination__id", "=destination__org_id", "=row_id")
    search_help_text = "Search by destination, organization or record ID."


class RollUpAdmin(LogAdmin):
    """By organization, newest first. Days come before hours."""

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> Any:
        for term in search_term.split():
            if org_id := ids.parse_id(term):  # the ids have the only index
                low, high = of_organization(org_id)
                queryset = queryset.filter(id__gte=low, id__lte=high)
        return super().get_search_results(request, queryset, search_term)


@admin.register(UsageCount)
class UsageCountAdmin(RollUpAdmin):
    list_display = tuple("day hour org_id vendor tool user_id source outcome calls duration_ms".split())
    list_filter = ("source", "outcome")
    search_fields = ("=org_id", "user_id__exact", "vendor__exact", "tool__exact")
    search_help_text = "Search by exact organization ID, user ID, vendor or tool."


@admin.register(UsageDuration)
class UsageDurationAdmin(RollUpAdmin):
    list_display = ("day", "hour", "org_id", "vendor", "bucket", "calls")
    search_fields = ("=org_id", "vendor__exact")
    search_help_text = "Search by exact organization ID or vendor."


@admin.register(UsageDay)
class UsageDayAdmin(RollUpAdmin):
    list_display = fields = ("day", "org_id", "version")
    search_fields = ("=org_id",)
    search_help_text = "Search by exact organization ID."

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("by_day", "by_vendor")  # they are large


@admin.register(UsageLabel)
class UsageLabelAdmin(LogAdmin):
    list_display = ("org_id", "user_id", "label")
    search_fields = ("=org_id", "user_id__exact", "label__exact")
    search_help_text = "Search by exact organization ID, user ID or label."
