"""People and organizations for superusers, to read. No token is shown; the support console has the actions."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group

from gateway.lib.read_only_admin import ReadOnlyAdmin
from orgs.models import (
    AccessRequest,
    Alert,
    AlertMessage,
    AlertSettings,
    Identity,
    Invitation,
    ItemAllowlist,
    JoinRequest,
    KnownTool,
    MailDomain,
    ManagementToken,
    Membership,
    Organization,
    Removal,
    ServerAccess,
    Team,
    TeamMembership,
    ToolAllowlist,
    ToolSnapshot,
    User,
)

# Replaced by a read-only page: operators change staff permissions on the command line.
admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(ReadOnlyAdmin):
    fields = ("name", "permissions")
    list_display = ("name",)
    search_fields = ("name",)


@admin.register(Organization)
class OrganizationAdmin(ReadOnlyAdmin):
    fields = ("id", "name", "default_server_access", "created_at")
    list_display = ("name", "id", "default_server_access", "created_at")
    search_fields = ("name", "=id", "memberships__user__email")


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    fields = tuple("id email first_name last_name display_name is_active is_staff created_at last_login".split())
    list_display = ("email", "name", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff")
    search_fields = ("email", "first_name", "last_name", "display_name", "=id")


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    fields = ("user", "issuer", "sub", "created_at", "last_used_at", "confirmed_at", "refused_at", "asked_at")
    list_display = ("user", "issuer", "sub", "last_used_at", "confirmed_at", "refused_at")
    list_select_related = ("user",)
    search_fields = ("sub", "user__email")


@admin.register(ManagementToken)
class ManagementTokenAdmin(ReadOnlyAdmin):
    fields = ("id", "name", "prefix", "membership", "scope", "created_at", "expires_at", "last_used_at")
    list_display = ("name", "prefix", "membership", "scope", "last_used_at", "expires_at")
    list_select_related = ("membership",)
    search_fields = ("prefix", "name", "membership__user__email", "membership__organization__name")


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    fields = ("organization", "user", "role", "joined_at")
    list_display = ("user", "organization", "role", "joined_at")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__email", "organization__name")


@admin.register(Removal)
class RemovalAdmin(ReadOnlyAdmin):
    fields = ("organization", "user", "removed_at")
    list_display = ("user", "organization", "removed_at")
    list_select_related = ("user", "organization")
    search_fields = ("user__email", "organization__name")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    fields = tuple("id organization email max_uses use_count created_by created_at expires_at revoked_at".split())
    list_display = ("id", "organization", "email", "use_count", "max_uses", "expires_at", "revoked_at")
    list_select_related = ("organization",)
    search_fields = ("=id", "email", "organization__name")


@admin.register(MailDomain)
class MailDomainAdmin(ReadOnlyAdmin):
    fields = tuple("id organization domain offer claimed_by created_at confirmed_at".split())
    list_display = ("domain", "organization", "offer", "claimed_by", "created_at", "confirmed_at")
    list_select_related = ("organization", "claimed_by")
    search_fields = ("domain", "=id", "organization__name", "claimed_by__email")


@admin.register(JoinRequest)
class JoinRequestAdmin(ReadOnlyAdmin):
    fields = ("id", "organization", "user", "created_at", "declined_at")
    list_display = ("user", "organization", "created_at", "declined_at")
    list_select_related = ("user", "organization")
    search_fields = ("=id", "user__email", "organization__name")


@admin.register(AccessRequest)
class AccessRequestAdmin(ReadOnlyAdmin):
    fields = tuple("id organization membership vendor reason created_at decided_at decided_by answer".split())
    list_display = ("membership", "organization", "vendor", "created_at", "decided_at")
    list_select_related = ("membership", "organization")
    search_fields = ("=id", "vendor", "organization__name", "membership__user__email")


@admin.register(Team)
class TeamAdmin(ReadOnlyAdmin):
    fields = ("id", "organization", "name", "created_at")
    list_display = ("name", "organization", "created_at")
    list_select_related = ("organization",)
    search_fields = ("name", "=id", "organization__name")


@admin.register(TeamMembership)
class TeamMembershipAdmin(ReadOnlyAdmin):
    fields = ("team", "membership", "joined_at")
    list_display = ("team", "membership", "joined_at")
    list_select_related = ("team", "membership")
    search_fields = ("team__name", "membership__user__email")


@admin.register(ServerAccess)
class ServerAccessAdmin(ReadOnlyAdmin):
    fields = ("organization", "membership", "team", "vendor", "granted_by", "granted_at")
    list_display = ("vendor", "organization", "membership", "team", "granted_at")
    list_filter = ("vendor",)
    list_select_related = ("organization", "membership", "team")
    search_fields = ("vendor", "organization__name", "membership__user__email", "team__name")


@admin.register(ToolAllowlist)
class ToolAllowlistAdmin(ReadOnlyAdmin):
    fields = ("organization", "vendor", "role", "tools", "updated_by", "updated_at")
    list_display = ("organization", "vendor", "role", "updated_at")
    list_filter = ("role",)
    list_select_related = ("organization",)
    search_fields = ("organization__name", "vendor")


@admin.register(ItemAllowlist)
class ItemAllowlistAdmin(ReadOnlyAdmin):
    fields = ("organization", "vendor", "role", "kind", "entries", "updated_by", "updated_at")
    list_display = ("organization", "vendor", "role", "kind", "updated_at")
    list_filter = ("role", "kind")
    list_select_related = ("organization",)
    search_fields = ("organization__name", "vendor")


@admin.register(KnownTool)
class KnownToolAdmin(ReadOnlyAdmin):
    fields = ("organization", "vendor", "tool", "seen_at", "seen_definition", "approved_definition")
    list_display = ("tool", "vendor", "organization", "seen_at")
    list_select_related = ("organization",)
    search_fields = ("tool", "vendor", "organization__name")


@admin.register(ToolSnapshot)
class ToolSnapshotAdmin(ReadOnlyAdmin):
    fields = ("organization", "vendor", "looked_at", "list_bytes")
    list_display = ("organization", "vendor", "looked_at", "list_bytes")
    list_select_related = ("organization",)
    search_fields = ("organization__name", "vendor")


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    fields = ("organization", "kind", "cause", "label", "detail", "level", "began_at", "ended_at", "told_at")
    list_display = ("began_at", "organization", "kind", "label", "ended_at")
    list_filter = ("kind",)
    list_select_related = ("organization",)
    search_fields = ("=id", "cause", "label", "organization__name")


@admin.register(AlertMessage)
class AlertMessageAdmin(ReadOnlyAdmin):
    fields = (
        "organization",
        "alert",
        "kind",
        "moment",
        "label",
        "created_at",
        "mails",
        "webhook",
        "attempts",
        "reason",
    )
    list_display = ("created_at", "organization", "kind", "moment", "label", "mails", "webhook")
    list_filter = ("kind", "webhook")
    list_select_related = ("organization",)
    search_fields = ("=id", "label", "organization__name")


@admin.register(AlertSettings)
class AlertSettingsAdmin(ReadOnlyAdmin):
    fields = ("organization", "muted_kinds", "by_mail", "webhook_url", "quiet_from", "quiet_until", "time_zone")
    list_display = ("organization", "by_mail", "quiet_from", "quiet_until")
    list_select_related = ("organization",)
    search_fields = ("organization__name",)
