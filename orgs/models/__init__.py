"""Rows of people, organizations and grants. Reach tenant rows through orgs.access or a selector that takes the org."""

from orgs.models.invitation import Invitation, InvitationState
from orgs.models.known_tool import KnownTool, ToolLook
from orgs.models.membership import Membership
from orgs.models.organization import Organization
from orgs.models.remembered_answer import RememberedAnswer
from orgs.models.removal import Removal
from orgs.models.server_access import ServerAccessGrant
from orgs.models.team import Team, TeamMembership
from orgs.models.tool_allowlist import ToolAllowlist
from orgs.models.user import Identity, UsedLogoutToken, User

__all__ = [
    "Identity",
    "Invitation",
    "InvitationState",
    "KnownTool",
    "Membership",
    "Organization",
    "RememberedAnswer",
    "Removal",
    "ServerAccessGrant",
    "Team",
    "TeamMembership",
    "ToolAllowlist",
    "ToolLook",
    "UsedLogoutToken",
    "User",
]
