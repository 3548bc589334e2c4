"""Read-only admin pages for superusers, without secrets and checksums. The support console has the actions."""

from __future__ import annotations

# Imported first: its registrations can edit clients and show secrets, so they are taken back below.
import oauth2_provider.admin  # noqa: F401
from django.contrib import admin

from gateway.lib.read_only_admin import ReadOnlyAdmin
from oauth_ext.models import (
    AccessToken,
    AgentKey,
    Client,
    DeviceGrant,
    Grant,
    IDToken,
    LinkedSubject,
    RefreshToken,
    RememberedConsent,
    ServiceClientAllowlist,
    ServiceClientItemAllowlist,
    ServiceClientVendor,
    SigningKey,
    TokenFamily,
    TrustedIssuer,
)

ENDED = "ended. Their tokens no longer work."

for model in (Client, AccessToken, RefreshToken, Grant, IDToken):
    admin.site.unregister(model)


@admin.register(Client)
class ClientAdmin(ReadOnlyAdmin):
    fields = tuple(
        (
            "id name client_id client_type registration_source organization created_by created expires_at last_used_at "
            "restricted tool_mode acts_for_people responsible secret_rotated_at previous_secret_ends_at "
            "cimd_expires_at redirect_uris"
        ).split()
    )
    list_display = ("name", "client_id", "client_type", "registration_source", "organization", "last_used_at")
    list_filter = ("client_type", "registration_source")
    list_select_related = ("organization",)
    search_fields = ("name", "client_id", "organization__name")


@admin.register(TokenFamily)
class TokenFamilyAdmin(ReadOnlyAdmin):
    fields = tuple(
        (
            "id client user organization approved_by trusted_issuer scope resource redirect_host created_at "
            "last_used_at expires_at"
        ).split()
    )
    list_display = ("id", "client", "user", "organization", "redirect_host", "last_used_at", "expires_at")
    list_select_related = ("client", "user", "organization")
    search_fields = ("client__client_id", "client__name", "user__email", "organization__name")


@admin.register(Grant)
class GrantAdmin(ReadOnlyAdmin):
    # Authorization codes; the code itself is not listed.
    fields = ("id", "application", "user", "organization", "scope", "resource", "created", "expires", "redeemed_at")
    list_display = ("id", "application", "user", "organization", "scope", "expires", "redeemed_at")
    list_select_related = ("application", "user", "organization")
    search_fields = ("application__client_id", "application__name", "user__email", "organization__name")


@admin.register(DeviceGrant)
class DeviceGrantAdmin(ReadOnlyAdmin):
    fields = tuple(
        (
            "id client scope resource requester_ip created_at expires_at interval_s last_polled_at decision decided_by "
            "decided_at consumed_at"
        ).split()
    )
    list_display = ("id", "client", "decision", "decided_by", "requester_ip", "created_at", "consumed_at")
    list_filter = ("decision",)
    list_select_related = ("client", "decided_by")
    search_fields = ("client__client_id", "client__name", "client__organization__name")


@admin.register(AgentKey)
class AgentKeyAdmin(ReadOnlyAdmin):
    fields = (
        "prefix",
        "client",
        "created_by",
        "created_at",
        "last_used_at",
        "ends_at",
    )  # the public half of the key only
    list_display = ("prefix", "client", "created_at", "last_used_at", "ends_at")
    list_select_related = ("client",)
    search_fields = ("prefix", "client__name", "client__client_id", "client__organization__name")


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnlyAdmin):
    fields = ("id", "application", "user", "organization", "scope", "resource", "created", "expires")
    list_display = ("id", "application", "user", "organization", "scope", "expires")
    list_select_related = ("application", "user", "organization")
    search_fields = ("application__client_id", "application__name", "user__email", "organization__name")


@admin.register(RefreshToken)
class RefreshTokenAdmin(ReadOnlyAdmin):
    # `revoked` is the moment of use.
    fields = ("id", "application", "user", "organization", "token_family", "generation", "created", "revoked")
    list_display = ("id", "application", "user", "organization", "token_family", "generation", "revoked")
    list_select_related = ("application", "user", "organization", "token_family")
    search_fields = ("application__client_id", "application__name", "user__email", "organization__name")


@admin.register(SigningKey)
class SigningKeyAdmin(ReadOnlyAdmin):
    # manage.py rotate_signing_key changes the keys.
    fields = ("kid", "public_jwk", "key_id", "created_at", "signs_from", "retires_at")
    list_display = ("kid", "key_id", "created_at", "signs_from", "retires_at")
    search_fields = ("kid",)


@admin.register(ServiceClientVendor)
class ServiceClientVendorAdmin(ReadOnlyAdmin):
    fields = ("client", "vendor", "granted_by", "granted_at")
    list_display = ("vendor", "client", "granted_by", "granted_at")
    list_filter = ("vendor",)
    list_select_related = ("client", "granted_by")
    search_fields = ("vendor", "client__client_id", "client__name", "client__organization__name")


@admin.register(ServiceClientAllowlist)
class ServiceClientAllowlistAdmin(ReadOnlyAdmin):
    fields = ("client", "vendor", "tools", "updated_by", "updated_at")
    list_display = ("vendor", "client", "updated_by", "updated_at")
    list_filter = ("vendor",)
    list_select_related = ("client", "updated_by")
    search_fields = ("vendor", "client__client_id", "client__name", "client__organization__name")


@admin.register(ServiceClientItemAllowlist)
class ServiceClientItemAllowlistAdmin(ReadOnlyAdmin):
    fields = ("client", "vendor", "kind", "entries", "updated_by", "updated_at")
    list_display = ("vendor", "client", "kind", "updated_by", "updated_at")
    list_filter = ("vendor", "kind")
    list_select_related = ("client", "updated_by")
    search_fields = ("vendor", "client__client_id", "client__name", "client__organization__name")


@admin.register(RememberedConsent)
class RememberedConsentAdmin(ReadOnlyAdmin):
    fields = ("user", "client", "organization", "scope", "redirect_host", "granted_at", "expires_at")
    list_display = ("user", "client", "organization", "redirect_host", "granted_at", "expires_at")
    list_select_related = ("user", "client", "organization")
    search_fields = ("user__email", "client__client_id", "client__name", "organization__name")


@admin.register(TrustedIssuer)
class TrustedIssuerAdmin(ReadOnlyAdmin):
    fields = tuple(
        "id organization issuer jwks_url tenant algorithms client_ids created_by created_at last_used_at".split()
    )
    list_display = ("issuer", "organization", "created_by", "created_at", "last_used_at")
    list_select_related = ("organization", "created_by")
    search_fields = ("issuer", "organization__name")


@admin.register(LinkedSubject)
class LinkedSubjectAdmin(ReadOnlyAdmin):
    fields = ("issuer", "sub", "user", "domain", "linked_at")
    list_display = ("sub", "issuer", "user", "domain", "linked_at")
    list_select_related = ("issuer", "user")
    search_fields = ("sub", "user__email", "issuer__issuer", "issuer__organization__name")
