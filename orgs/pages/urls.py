from django.urls import path

from gateway.web.page_limit import page_limited
from orgs.pages.access_requests import AccessRequestsPage
from orgs.pages.invitations import InvitationsPage, RevokeInvitationPage
from orgs.pages.invite import InvitePage
from orgs.pages.invite_people import InvitePeoplePage
from orgs.pages.mail_domain import JoinPage, MailDomainPage
from orgs.pages.members import LeavePage, MemberRolePage, MembersPage, RemoveMemberPage
from orgs.pages.ownership import StepDownPage, TransferOwnershipPage
from orgs.pages.person import PersonAccessPage, PersonPage
from orgs.pages.server_access import ServerAccessPage
from orgs.pages.settings import DefaultAccessPage, DeleteOrganizationPage, SettingsPage
from orgs.pages.team import TeamPage, TeamSettingsPage
from orgs.pages.team_access import TeamAccessPage
from orgs.pages.team_tools import TeamToolsPage
from orgs.pages.teams import DeleteTeamPage, TeamsPage
from orgs.pages.welcome import WelcomePage

app_name = "orgs"
urlpatterns = [
    path("welcome", page_limited(WelcomePage.as_view()), name="welcome"),
    path("welcome/join", page_limited(JoinPage.as_view()), name="join"),
    path("invite/<str:token>", InvitePage.as_view(), name="invite"),
    path("orgs/<uuid:org_id>/leave", LeavePage.as_view(), name="leave"),
    path("orgs/<uuid:org_id>/people", MembersPage.as_view(), name="members"),
    path("orgs/<uuid:org_id>/people/<uuid:user_id>", PersonPage.as_view(), name="person"),
    path("orgs/<uuid:org_id>/people/<uuid:user_id>/access", PersonAccessPage.as_view(), name="person-access"),
    path("orgs/<uuid:org_id>/people/<uuid:user_id>/settings", MemberRolePage.as_view(), name="member-role"),
    path("orgs/<uuid:org_id>/people/<uuid:user_id>/owner", TransferOwnershipPage.as_view(), name="member-owner"),
    path("orgs/<uuid:org_id>/people/<uuid:user_id>/remove", RemoveMemberPage.as_view(), name="member-remove"),
    path("orgs/<uuid:org_id>/step-down", StepDownPage.as_view(), name="step-down"),
    path("orgs/<uuid:org_id>/invitations", InvitationsPage.as_view(), name="invitations"),
    path("orgs/<uuid:org_id>/invitations/people", InvitePeoplePage.as_view(), name="invite-people"),
    path(
        "orgs/<uuid:org_id>/invitations/<uuid:invitation_id>/revoke",
        RevokeInvitationPage.as_view(),
        name="invitation-revoke",
    ),
    path("orgs/<uuid:org_id>/teams", TeamsPage.as_view(), name="teams"),
    path("orgs/<uuid:org_id>/teams/<uuid:team_id>", TeamPage.as_view(), name="team"),
    path("orgs/<uuid:org_id>/teams/<uuid:team_id>/access", TeamAccessPage.as_view(), name="team-access"),
    path("orgs/<uuid:org_id>/teams/<uuid:team_id>/tools", TeamToolsPage.as_view(), name="team-tools"),
    path("orgs/<uuid:org_id>/teams/<uuid:team_id>/settings", TeamSettingsPage.as_view(), name="team-settings"),
    path("orgs/<uuid:org_id>/teams/<uuid:team_id>/delete", DeleteTeamPage.as_view(), name="team-delete"),
    path("orgs/<uuid:org_id>/access", ServerAccessPage.as_view(), name="server-access"),
    path("orgs/<uuid:org_id>/access-requests", AccessRequestsPage.as_view(), name="access-requests"),
    path("orgs/<uuid:org_id>/settings", SettingsPage.as_view(), name="settings"),
    path("orgs/<uuid:org_id>/settings/default-access", DefaultAccessPage.as_view(), name="default-access"),
    path("orgs/<uuid:org_id>/settings/mail-domain", MailDomainPage.as_view(), name="mail-domain"),
    path("orgs/<uuid:org_id>/settings/delete", DeleteOrganizationPage.as_view(), name="organization-delete"),
]
