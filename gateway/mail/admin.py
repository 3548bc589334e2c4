"""E-mail for support staff: to whom, what became of it. The facts are those of an organization's logs."""

from __future__ import annotations

from django.contrib import admin

from gateway.lib.read_only_admin import ReadOnlyAdmin
from gateway.mail.models import OutgoingMail


@admin.register(OutgoingMail)
class OutgoingMailAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "kind", "address", "organization", "attempts", "reason", "ended_at")
    list_filter = ("kind",)
    list_select_related = ("organization",)
    search_fields = ("address", "id", "organization__id")
    fields = ("id", *list_display, "next_attempt_at")
    readonly_fields = fields
