"""Credentials for support staff: read only, without the sealed content."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from credentials.models import (
    Credential,
    OrganizationDataKey,
    VendorConnection,
    VendorOAuthClient,
    VendorQuestionRules,
    VendorSignInRules,
)
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


@admin.register(VendorConnection)
class VendorConnectionAdmin(ReadOnlyAdmin):
    list_display = ("vendor", "organization", "membership", "status", "expires_at", "refreshed_at")
    list_filter = ("status", "vendor")
    list_select_related = ("organization", "membership__user")
    search_fields = ("=id", "vendor", "organization__name", "=organization__id", "membership__user__email")
    ordering = ("-connected_at",)
    # Named one by one: a column added to the model later does not appear here by itself.
    readonly_fields = tuple(
        (
            "id organization vendor membership issuer resource scopes account revision data_key_version status problem "
            "expires_at refresh_at lease_until connected_by connected_at refreshed_at"
        ).split()
    )
    fields = readonly_fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[VendorConnection]:
        # The sealed columns stay in the database.
        rows: QuerySet[VendorConnection] = super().get_queryset(request)
        return rows.defer("sealed", "sealed_refresh")


@admin.register(VendorSignInRules)
class VendorSignInRulesAdmin(ReadOnlyAdmin):
    fields = ("id", "organization", "vendor", "people_may_connect", "scopes", "issuer", "changed_at")
    readonly_fields = fields
    list_display = ("vendor", "organization", "people_may_connect", "issuer", "changed_at")
    list_select_related = ("organization",)
    search_fields = ("vendor", "organization__name", "=organization__id")


@admin.register(VendorQuestionRules)
class VendorQuestionRulesAdmin(ReadOnlyAdmin):
    fields = ("id", "organization", "vendor", "elicitation", "sampling", "roots", "changed_at")
    readonly_fields = fields
    list_display = ("vendor", "organization", "elicitation", "sampling", "roots", "changed_at")
    list_select_related = ("organization",)
    search_fields = ("vendor", "organization__name", "=organization__id")


@admin.register(VendorOAuthClient)
class VendorOAuthClientAdmin(ReadOnlyAdmin):
    fields = ("id", "organization", "vendor", "issuer", "client_id", "auth_method", "registered_at")
    readonly_fields = fields
    list_display = ("vendor", "organization", "issuer", "client_id", "registered_at")
    list_select_related = ("organization",)
    search_fields = ("vendor", "organization__name", "=organization__id", "issuer", "client_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[VendorOAuthClient]:
        # The sealed column stays in the database.
        rows: QuerySet[VendorOAuthClient] = super().get_queryset(request)
        return rows.defer("sealed")
