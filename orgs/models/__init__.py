"""People and organizations. Reach tenant rows through orgs.membership_check or a selector that takes the org."""

from orgs.models.access_request import AccessRequest
from orgs.models.alert import Alert, AlertMessage, AlertSettings
from orgs.models.browser_session import BrowserSession, KnownBrowser
from orgs.models.invitation import Invitation, InvitationState
from orgs.models.item_allowlist import ItemAllowlist
from orgs.models.known_tool import KnownTool, ToolSnapshot
from orgs.models.mail_domain import JoinRequest, MailDomain
from orgs.models.management_token import ManagementToken
from orgs.models.membership import Membership
from orgs.models.organization import Organization
from orgs.models.removal import Removal
from orgs.models.server_access import ServerAccess
from orgs.models.team import Team, TeamMembership
from orgs.models.tool_allowlist import ToolAllowlist
from orgs.models.user import Identity, UsedLogoutToken, User

__all__ = [
    "AccessRequest",
    "Alert",
    "AlertMessage",
    "AlertSettings",
    "BrowserSession",
    "Identity",
    "Invitation",
    "InvitationState",
    "ItemAllowlist",
    "JoinRequest",
    "KnownBrowser",
    "KnownTool",
    "MailDomain",
    "ManagementToken",
    "Membership",
    "Organization",
    "Removal",
    "ServerAccess",
    "Team",
    "TeamMembership",
    "ToolAllowlist",
    "ToolSnapshot",
    "UsedLogoutToken",
    "User",
]
