"""Read-only admin pages for support staff, without secrets and checksums.

Staff may delete clients, revoke families and agent keys; the organization's log names the staff member.
"""

from __future__ import annotations

# Imported first: its registrations can edit clients and show secrets, so they are taken back below.
import oauth2_provider.admin  # noqa: F401
from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest

from audit.actor import Actor
from gateway.lib.read_only_admin import ReadOnlyAdmin
from gateway.web.acting_admin import ActingAdmin
from oauth_ext.models import (
    AccessToken,
    AgentKey,
    Client,
    DeviceGrant,
    Grant,
    IDToken,
    RefreshToken,
    RememberedConsent,
    ServiceClientAllowlist,
    ServiceClientVendor,
    SigningKey,
    TokenFamily,
)
from oauth_ext.services.agent_keys import end_agent_key
from oauth_ext.services.registration import delete_registered_client
from oauth_ext.services.service_clients import delete_service_client
from oauth_ext.services.token_families import revoke_family_as_staff

ENDED = "ended. Their tokens no longer work."

for model in (Client, AccessToken, RefreshToken, Grant, IDToken):
    admin.site.unregister(model)


@admin.register(Client)
class ClientAdmin(ActingAdmin):
    actions = ("delete_clients",)
    fields = tuple(
        (
            "id name client_id client_type registration_source organization created_by created expires_at last_used_at "
            "restricted tool_mode responsible secret_rotated_at previous_secret_ends_at cimd_expires_at redirect_uris"
        ).split()
    )
    list_display = ("name", "client_id", "client_type", "registration_source", "organization", "last_used_at")
    list_filter = ("client_type", "registration_source")
    list_select_related = ("organization",)
    search_fields = ("name", "client_id", "organization__name")

    @admin.action(description="Delete the client and end all its tokens", permissions=["staff_delete"])
    def delete_clients(self, request: HttpRequest, chosen: QuerySet[Client]) -> None:
        def delete(actor: Actor, client: Client) -> None:
            if client.is_service_client:
                delete_service_client(actor=actor, client=client)
            else:
                delete_registered_client(actor=actor, client_pk=client.pk)

        self.act(request, chosen, delete, ENDED)


@admin.register(TokenFamily)
class TokenFamilyAdmin(ActingAdmin):
    actions = ("revoke_families",)
    fields = tuple(
        (
            "id client user organization approved_by scope resource redirect_host created_at last_used_at expires_at"
        ).split()
    )
    list_display = ("id", "client", "user", "organization", "redirect_host", "last_used_at", "expires_at")
    list_select_related = ("client", "user", "organization")
    search_fields = ("client__client_id", "client__name", "user__email", "organization__name")

    @admin.action(description="Revoke: end all tokens of the family", permissions=["staff_delete"])
    def revoke_families(self, request: HttpRequest, chosen: QuerySet[TokenFamily]) -> None:
        self.act(request, chosen, lambda actor, row: revoke_family_as_staff(actor=actor, family_id=row.pk), ENDED)


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
class AgentKeyAdmin(ActingAdmin):
    actions = ("revoke_keys",)
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

    @admin.action(description="Revoke the agent key; the agent stays", permissions=["staff_delete"])
    def revoke_keys(self, request: HttpRequest, chosen: QuerySet[AgentKey]) -> None:
        # Rotated keys before the current ones, which end both.
        in_turn = chosen.order_by(F("ends_at").asc(nulls_last=True), "pk")
        self.act(request, in_turn, lambda actor, key: end_agent_key(actor=actor, key=key), "revoked.")


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


@admin.register(RememberedConsent)
class RememberedConsentAdmin(ReadOnlyAdmin):
    fields = ("user", "client", "organization", "scope", "redirect_host", "granted_at", "expires_at")
    list_display = ("user", "client", "organization", "redirect_host", "granted_at", "expires_at")
    list_select_related = ("user", "client", "organization")
    search_fields = ("user__email", "client__client_id", "client__name", "organization__name")
