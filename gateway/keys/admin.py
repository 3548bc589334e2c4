"""Keys for support staff: names and times."""

from __future__ import annotations

from django.contrib import admin

from gateway.keys.models import KeyRecord
from gateway.lib.read_only_admin import ReadOnlyAdmin


@admin.register(KeyRecord)
class KeyRecordAdmin(ReadOnlyAdmin):
    list_display = ("kind", "name", "first_seen_at", "used_from", "is_current")
    list_filter = ("kind",)
    search_fields = ("name",)
    fields = list_display
    readonly_fields = list_display
