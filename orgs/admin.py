"""People and organizations for support staff. Every action writes to the organization's log; no token is shown."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from audit.actor import Actor
from billing.services import set_subscription
from billing.states import SubscriptionStatus
from gateway.lib.errors import Conflict
from gateway.lib.read_only_admin import ReadOnlyAdmin
from gateway.web.acting_admin import ActingAdmin
from oauth_ext.services.deactivation import deactivate_person, reactivate_person
from orgs.models import (
    AccessRequest,
    Identity,
    Invitation,
    JoinRequest,
    KnownTool,
    MailDomain,
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
from orgs.services.invitations import revoke_invitation
from orgs.services.mail_domains import confirm_domain, release_domain
from orgs.services.members import remove_member
from orgs.services.server_access import remove_member_vendor, remove_team_vendor

# Replaced by a read-only page: operators change staff permissions on the command line.
admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(ReadOnlyAdmin):
    fields = ("name", "permissions")
    list_display = ("name",)
    search_fields = ("name",)


@admin.register(Organization)
class OrganizationAdmin(ActingAdmin):
    actions = ("set_active", "set_canceled")
    fields = ("id", "name", "default_server_access", "created_at")
    list_display = ("name", "id", "default_server_access", "created_at")
    search_fields = ("name", "=id", "memberships__user__email")

    def has_billing_permission(self, request: HttpRequest) -> bool:
        # With a payment provider, its events alone set the state.
        return settings.BILLING_MODE == "manual" and bool(request.user.has_perm("billing.change_subscription"))

    @admin.action(description="Set the subscription to active", permissions=["billing"])
    def set_active(self, request: HttpRequest, chosen: QuerySet[Organization]) -> None:
        self._set(request, chosen, SubscriptionStatus.ACTIVE)

    @admin.action(description="Set the subscription to canceled", permissions=["billing"])
    def set_canceled(self, request: HttpRequest, chosen: QuerySet[Organization]) -> None:
        self._set(request, chosen, SubscriptionStatus.CANCELED)

    def _set(self, request: HttpRequest, chosen: QuerySet[Organization], status: SubscriptionStatus) -> None:
        def change(actor: Actor, organization: Organization) -> None:
            set_subscription(actor=actor, organization=organization, status=status)

        self.act(request, chosen, change, f"set to {status.value}.")


@admin.register(User)
class UserAdmin(ActingAdmin):
    actions = ("deactivate_people", "reactivate_people")
    fields = tuple("id email first_name last_name display_name is_active is_staff created_at last_login".split())
    list_display = ("email", "name", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff")
    search_fields = ("email", "first_name", "last_name", "display_name", "=id")

    @admin.action(
        description="Deactivate and end sessions, tokens and created agent keys", permissions=["staff_delete"]
    )
    def deactivate_people(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        def deactivate(actor: Actor, person: User) -> None:
            # The person would lose access to the admin at once.
            if person.pk == request.user.pk:
                raise Conflict("You cannot deactivate yourself.")
            for line in deactivate_person(actor=actor, user_id=person.pk).lines():
                messages.info(request, line)

        self.act(request, chosen, deactivate, "deactivated.")

    @admin.action(description="Allow to sign in again", permissions=["staff_delete"])
    def reactivate_people(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        def reactivate(actor: Actor, person: User) -> None:
            # Memberships count again; sessions, tokens and keys stay ended.
            reactivate_person(actor=actor, user_id=person.pk)

        self.act(request, chosen, reactivate, "may sign in again.")


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    fields = ("user", "issuer", "sub", "created_at", "last_used_at", "confirmed_at", "refused_at", "asked_at")
    list_display = ("user", "issuer", "sub", "last_used_at", "confirmed_at", "refused_at")
    list_select_related = ("user",)
    search_fields = ("sub", "user__email")


@admin.register(Membership)
class MembershipAdmin(ActingAdmin):
    actions = ("remove_members",)
    fields = ("organization", "user", "role", "joined_at")
    list_display = ("user", "organization", "role", "joined_at")
    list_filter = ("role",)
    list_select_related = ("user", "organization")
    search_fields = ("user__email", "organization__name")

    @admin.action(
        description="Remove from the organization and end tokens and server access", permissions=["staff_delete"]
    )
    def remove_members(self, request: HttpRequest, chosen: QuerySet[Membership]) -> None:
        def remove(actor: Actor, row: Membership) -> None:
            # Raises LastOwner for the last owner.
            remove_member(actor=actor, organization=row.organization, user_id=row.user_id)

        self.act(request, chosen, remove, "removed.")


@admin.register(Removal)
class RemovalAdmin(ReadOnlyAdmin):
    fields = ("organization", "user", "removed_at")
    list_display = ("user", "organization", "removed_at")
    list_select_related = ("user", "organization")
    search_fields = ("user__email", "organization__name")


@admin.register(Invitation)
class InvitationAdmin(ActingAdmin):
    actions = ("revoke_invitations",)
    fields = tuple("id organization email max_uses use_count created_by created_at expires_at revoked_at".split())
    list_display = ("id", "organization", "email", "use_count", "max_uses", "expires_at", "revoked_at")
    list_select_related = ("organization",)
    search_fields = ("=id", "email", "organization__name")

    @admin.action(description="Revoke the link", permissions=["staff_delete"])
    def revoke_invitations(self, request: HttpRequest, chosen: QuerySet[Invitation]) -> None:
        def revoke(actor: Actor, row: Invitation) -> None:
            revoke_invitation(actor=actor, organization=row.organization, invitation_id=row.pk)

        self.act(request, chosen, revoke, "revoked.")


@admin.register(MailDomain)
class MailDomainAdmin(ActingAdmin):
    actions = ("confirm_domains", "release_domains")
    fields = tuple("id organization domain offer claimed_by created_at confirmed_at".split())
    list_display = ("domain", "organization", "offer", "claimed_by", "created_at", "confirmed_at")
    list_select_related = ("organization", "claimed_by")
    search_fields = ("domain", "=id", "organization__name", "claimed_by__email")

    @admin.action(description="Confirm that the domain is the organization's", permissions=["staff_delete"])
    def confirm_domains(self, request: HttpRequest, chosen: QuerySet[MailDomain]) -> None:
        def confirm(actor: Actor, row: MailDomain) -> None:
            confirm_domain(actor=actor, domain_id=row.pk)

        self.act(request, chosen, confirm, "confirmed.")

    @admin.action(description="Take the domain away from the organization", permissions=["staff_delete"])
    def release_domains(self, request: HttpRequest, chosen: QuerySet[MailDomain]) -> None:
        def release(actor: Actor, row: MailDomain) -> None:
            release_domain(actor=actor, organization=row.organization, domain_id=row.pk)

        self.act(request, chosen, release, "released.")


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
class ServerAccessAdmin(ActingAdmin):
    actions = ("revoke_access",)
    fields = ("organization", "membership", "team", "vendor", "granted_by", "granted_at")
    list_display = ("vendor", "organization", "membership", "team", "granted_at")
    list_filter = ("vendor",)
    list_select_related = ("organization", "membership", "team")
    search_fields = ("vendor", "organization__name", "membership__user__email", "team__name")

    @admin.action(description="Revoke server access", permissions=["staff_delete"])
    def revoke_access(self, request: HttpRequest, chosen: QuerySet[ServerAccess]) -> None:
        def revoke(actor: Actor, row: ServerAccess) -> None:
            of: dict[str, Any] = {"actor": actor, "organization": row.organization, "vendor": row.vendor}
            if row.membership is not None:
                remove_member_vendor(user_id=row.membership.user_id, **of)
            elif row.team_id is not None:
                remove_team_vendor(team_id=row.team_id, **of)

        self.act(request, chosen, revoke, "revoked.")


@admin.register(ToolAllowlist)
class ToolAllowlistAdmin(ReadOnlyAdmin):
    fields = ("organization", "vendor", "role", "tools", "updated_by", "updated_at")
    list_display = ("organization", "vendor", "role", "updated_at")
    list_filter = ("role",)
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
