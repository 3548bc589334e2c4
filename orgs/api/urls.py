from django.urls import path

from orgs.api import (
    access_requests,
    invitations,
    item_access,
    management_tokens,
    members,
    organizations,
    profile,
    server_access,
    teams,
    tool_access,
)

app_name = "orgs_api"
_ORG = "orgs/<str:org_id>"
urlpatterns = [
    path("profile", profile.Profile.as_view(), name="profile"),
    path("profile/tokens", management_tokens.ManagementTokenList.as_view(), name="management-tokens"),
    path("profile/tokens/<str:token_id>", management_tokens.ManagementTokenDetail.as_view(), name="management-token"),
    path("orgs", organizations.OrganizationList.as_view(), name="organizations"),
    path(_ORG, organizations.OrganizationDetail.as_view(), name="organization"),
    path(f"{_ORG}/settings", organizations.OrganizationSettings.as_view(), name="settings"),
    path(f"{_ORG}/members", members.MemberList.as_view(), name="members"),
    path(f"{_ORG}/members/<str:user_id>", members.MemberDetail.as_view(), name="member"),
    path(f"{_ORG}/members/<str:user_id>/role", members.MemberRole.as_view(), name="member-role"),
    path(f"{_ORG}/members/<str:user_id>/ownership", members.Ownership.as_view(), name="ownership"),
    path(f"{_ORG}/membership", members.OwnMembership.as_view(), name="membership"),
    path(f"{_ORG}/ownership", members.OwnOwnership.as_view(), name="ownership"),
    path(f"{_ORG}/invitations", invitations.InvitationList.as_view(), name="invitations"),
    path(f"{_ORG}/invitations/people", invitations.InvitedPeople.as_view(), name="invited-people"),
    path(
        f"{_ORG}/invitations/<str:invitation_id>/send",
        invitations.InvitationMessage.as_view(),
        name="invitation-message",
    ),
    path(f"{_ORG}/invitations/<str:invitation_id>", invitations.InvitationDetail.as_view(), name="invitation"),
    path(f"{_ORG}/teams", teams.TeamList.as_view(), name="teams"),
    path(f"{_ORG}/teams/<str:team_id>", teams.TeamDetail.as_view(), name="team"),
    path(f"{_ORG}/teams/<str:team_id>/members/<str:user_id>", teams.TeamMember.as_view(), name="team-member"),
    path(f"{_ORG}/server-access", server_access.ServerAccessList.as_view(), name="server-access"),
    path(
        f"{_ORG}/members/<str:user_id>/server-access",
        server_access.MemberServerAccess.as_view(),
        name="member-server-access",
    ),
    path(
        f"{_ORG}/members/<str:user_id>/server-access/<str:vendor>",
        server_access.MemberVendor.as_view(),
        name="member-vendor",
    ),
    path(
        f"{_ORG}/teams/<str:team_id>/server-access/<str:vendor>",
        server_access.TeamVendor.as_view(),
        name="team-vendor",
    ),
    path(f"{_ORG}/access-requests", access_requests.AccessRequestList.as_view(), name="access-requests"),
    path(
        f"{_ORG}/access-requests/<str:request_id>",
        access_requests.AccessRequestDetail.as_view(),
        name="access-request",
    ),
    path(
        f"{_ORG}/access-requests/<str:request_id>/approve",
        access_requests.AccessRequestApproval.as_view(),
        name="access-request-approve",
    ),
    path(
        f"{_ORG}/access-requests/<str:request_id>/decline",
        access_requests.AccessRequestRefusal.as_view(),
        name="access-request-decline",
    ),
    path(f"{_ORG}/tool-access/<str:vendor>", tool_access.ToolAccess.as_view(), name="tool-access"),
    path(f"{_ORG}/tool-access/<str:vendor>/<str:role>", tool_access.RoleToolAccess.as_view(), name="role-tool-access"),
    path(f"{_ORG}/item-access/<str:vendor>", item_access.ItemAccess.as_view(), name="item-access"),
    path(
        f"{_ORG}/item-access/<str:vendor>/<str:role>/<str:kind>",
        item_access.RoleItemAccess.as_view(),
        name="role-item-access",
    ),
]
