"""Pure: errors of organizations."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.lib.errors import Conflict, DomainError, Forbidden, NotFound


class OrganizationLimit(Conflict):
    """Spec: D36"""

    code, message = "org_limit", "You already created as many organizations as one person may."


class LimitReached(Conflict):
    """The organization has reached its cap for rows of one kind. Spec: D161"""

    code = "limit_reached"

    def __init__(self, kind: str, cap: int) -> None:
        super().__init__(f"This organization has {cap} {kind}, which is as many as it may have.")


class LastOwner(Conflict):
    """The organization would lose its last owner. `themselves`: the actor is that owner. Spec: D45"""

    code = "last_owner"

    # The message names the next step for the owner who leaves, or for support staff.
    def __init__(self, *, themselves: bool) -> None:
        super().__init__(
            "You are the only owner, and an organization keeps one. Ask whoever runs this service to add another"
            " owner, or delete the organization if it is no longer needed."
            if themselves
            else "An organization keeps an owner. Add another one first, with `manage.py add_member --role owner`."
        )


class CannotChangeOwnRole(Forbidden):
    """Spec: §4.4 · D44"""

    code, message = "cannot_change_own_role", "You cannot change your own role."


class DeactivatedMember(Conflict):
    """A deactivated person cannot become an owner. Spec: D154"""

    code, message = "member_deactivated", "This person is deactivated and cannot become an owner."


class DeactivatedPerson(Conflict):
    """A command names a deactivated person. `ids`: all deactivated people with the address."""

    code = "person_deactivated"

    def __init__(self, email: str, ids: Sequence[UUID]) -> None:
        named = " or ".join(str(key) for key in ids)
        super().__init__(
            f"The person with the address {email} is deactivated. Nothing was changed."
            f" `manage.py reactivate_user {named}` lets the person sign in again."
        )


class TeamNameTaken(Conflict):
    """Spec: D60"""

    code, message = "team_name_taken", "A team of this organization already has this name."


class AllowlistChanged(Conflict):
    """The list changed while it was edited; `by`: name of the editor, or empty. Spec: ux.md 7"""

    code, message = "allowlist_changed", "Somebody changed this list meanwhile."

    def __init__(self, by: str = "") -> None:
        self.by = by
        super().__init__(f"{by} changed this list meanwhile." if by else None)


class ToolsChanged(Conflict):
    """The vendor's tools differ from those that the reviewer saw. Spec: ux.md 7"""

    code, message = "tools_changed", "The vendor's tools changed again meanwhile. Look at them once more."


class InvitationNotFound(NotFound):
    """The invitation does not exist or was revoked. Spec: D54"""

    code, message = "invitation_not_found", "This invitation does not exist. Ask for a new link."


class InvitationGone(DomainError):
    """Base of the two ends of a valid link. Spec: D54"""

    # 410 and not 404: the link was valid once.
    status = 410


class InvitationExpired(InvitationGone):
    code, message = "invitation_expired", "This invitation has expired. Ask for a new link."


class InvitationUsed(InvitationGone):
    code, message = "invitation_used", "This invitation was already used. Ask for a new link."


class InvitationEmailMismatch(Forbidden):
    """The person's verified e-mail address is not the invitation's. Spec: D47, D54"""

    code = "invitation_email_mismatch"
    # The provider confirms another address, or does not confirm this one.
    message = (
        "This invitation is for an e-mail address that your sign-in does not confirm as yours. Sign in with that"
        " address, or ask for a new link."
    )


class InvitationBeforeRemoval(Forbidden):
    """The person was removed after the invitation was made. Spec: D162"""

    code = "invitation_before_removal"
    message = "You were removed from this organization after this invitation was made. Ask for a new invitation."
