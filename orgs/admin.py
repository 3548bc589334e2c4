"""People and organizations for support staff. No token of an invitation is shown, sealed or not."""

from __future__ import annotations

from django.contrib import admin

from gateway.lib.read_only_admin import ReadOnlyAdmin
from orgs.models import (
    Identity,
    Invitation,
    KnownTool,
    Membership,
    Organization,
    ServerAccessGrant,
    Team,
    TeamMembership,
    ToolAllowlist,
    ToolLook,
    User,
)


@admin.register(Organization)
class OrganizationAdmin(ReadOnlyAdmin):
    """Customers."""

    fields = ("id", "name", "default_server_access", "created_at")
    list_display = ("name", "id", "default_server_access", "created_at")
    search_fields = ("name", "=id", "memberships__user__email")


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    """People."""

    fields = (
        "id",
        "email",
        "first_name",
        "last_name",
        "display_name",
        "is_active",
        "is_staff",
        "created_at",
        "last_login",
    )
    list_display = ("email", "name", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff")
    search_fields = ("email", "first_name", "last_name", "display_name", "=id")


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    """Who the identity provider says somebody is."""

    fields = ("user", "issuer", "sub", "created_at", "last_used_at")
    list_display = ("user", "issuer", "sub", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("sub", "user__email")


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    """Who belongs where."""

    fields = ("organization", "user", "role", "joined_at")
    list_display = ("user", "organization", "role", "joined_at")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__email", "organization__name")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Links, without what opens them."""

    fields = (
        "id",
        "organization",
        "email",
        "max_uses",
        "use_count",
        "created_by",
        "created_at",
        "expires_at",
        "revoked_at",
    )
    list_display = ("id", "organization", "email", "use_count", "max_uses", "expires_at", "revoked_at")
    list_select_related = ("organization",)
    search_fields = ("=id", "email", "organization__name")


@admin.register(Team)
class TeamAdmin(ReadOnlyAdmin):
    """Teams."""

    fields = ("id", "organization", "name", "created_at")
    list_display = ("name", "organization", "created_at")
    list_select_related = ("organization",)
    search_fields = ("name", "=id", "organization__name")


@admin.register(TeamMembership)
class TeamMembershipAdmin(ReadOnlyAdmin):
    """Who is in which team."""

    fields = ("team", "membership", "joined_at")
    list_display = ("team", "membership", "joined_at")
    list_select_related = ("team", "membership")
    search_fields = ("team__name", "membership__user__email")


@admin.register(ServerAccessGrant)
class ServerAccessGrantAdmin(ReadOnlyAdmin):
    """Vendor grants."""

    fields = ("organization", "membership", "team", "vendor", "granted_by", "granted_at")
    list_display = ("vendor", "organization", "membership", "team", "granted_at")
    list_filter = ("vendor",)
    list_select_related = ("organization", "membership", "team")
    search_fields = ("vendor", "organization__name", "membership__user__email", "team__name")


@admin.register(ToolAllowlist)
class ToolAllowlistAdmin(ReadOnlyAdmin):
    """Which tools a role may call."""

    fields = ("organization", "vendor", "role", "tools", "updated_by", "updated_at")
    list_display = ("organization", "vendor", "role", "updated_at")
    list_filter = ("role",)
    list_select_related = ("organization",)
    search_fields = ("organization__name", "vendor")


@admin.register(KnownTool)
class KnownToolAdmin(ReadOnlyAdmin):
    """Tools as an organization saw them last."""

    fields = ("organization", "vendor", "tool", "seen_at", "seen_definition", "approved_definition")
    list_display = ("tool", "vendor", "organization", "seen_at")
    list_select_related = ("organization",)
    search_fields = ("tool", "vendor", "organization__name")


@admin.register(ToolLook)
class ToolLookAdmin(ReadOnlyAdmin):
    """When a vendor's tools were compared last."""

    fields = ("organization", "vendor", "looked_at")
    list_display = ("organization", "vendor", "looked_at")
    list_select_related = ("organization",)
    search_fields = ("organization__name", "vendor")
