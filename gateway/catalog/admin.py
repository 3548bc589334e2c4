"""The catalog in Django admin, read-only: it changes only by loading catalog files."""

from __future__ import annotations

from django.contrib import admin

from gateway.catalog.models import VendorRow
from gateway.lib.read_only_admin import ReadOnlyAdmin


@admin.register(VendorRow)
class VendorRowAdmin(ReadOnlyAdmin):
    list_display = ("slug", "vendor_name", "category", "url", "tool_prefix", "source", "loaded_at")
    search_fields = ("slug", "tool_prefix", "source", "definition__name", "definition__url", "definition__category")
    readonly_fields = ("slug", "tool_prefix", "definition", "source", "digest", "loaded_at")

    @admin.display(description="name")
    def vendor_name(self, row: VendorRow) -> str:
        return str(row.definition.get("name", ""))

    @admin.display(description="category")
    def category(self, row: VendorRow) -> str:
        return str(row.definition.get("category", ""))

    @admin.display(description="address")
    def url(self, row: VendorRow) -> str:
        # An address template, which holds no secrets.
        return str(row.definition.get("url", ""))
