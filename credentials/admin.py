"""Credentials for support staff: read only, without the sealed content."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from credentials.models import Credential, OrganizationDataKey
from gateway.lib.read_only_admin import ReadOnlyAdmin


@admin.register(Credential)
class CredentialAdmin(ReadOnlyAdmin):
    list_display = ("vendor", "scope", "name", "organization", "team", "service_client", "validated_at", "updated_at")
    list_filter = ("scope", "vendor")
    list_select_related = ("organization", "team", "service_client")
    search_fields = tuple(
        "=id vendor name organization__name =organization__id team__name service_client__name".split()
    )
    ordering = ("-updated_at",)
    # Named one by one: a column added to the model later does not appear here by itself.
    readonly_fields = tuple(
        (
            "id organization vendor scope team service_client name revision data_key_version validated_at created_by "
            "created_at updated_at"
        ).split()
    )
    fields = readonly_fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Credential]:
        # The sealed column stays in the database.
        rows: QuerySet[Credential] = super().get_queryset(request)
        return rows.defer("sealed")


@admin.register(OrganizationDataKey)
class OrganizationDataKeyAdmin(ReadOnlyAdmin):
    fields = ("organization", "version", "key_id", "created_at")
    list_display = ("organization", "version", "key_id", "created_at")
    list_filter = ("key_id",)
    list_select_related = ("organization",)
    search_fields = ("organization__name", "=organization__id", "key_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[OrganizationDataKey]:
        # The wrapped column stays in the database.
        rows: QuerySet[OrganizationDataKey] = super().get_queryset(request)
        return rows.defer("wrapped_key")
