"""Pure: refusals that only organizations know."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.lib.errors import Conflict, DomainError, Forbidden, NotFound


class OrganizationLimit(Conflict):
    """One person owns as many organizations as we allow. Spec: D36"""

    code, message = "org_limit", "You already created as many organizations as one person may."


class LimitReached(Conflict):
    """The organization has as many rows of a kind as the operator allows one. Spec: D161"""

    code = "limit_reached"

    def __init__(self, kind: str, cap: int) -> None:
        super().__init__(f"This organization has {cap} {kind}, which is as many as it may have.")


class LastOwner(Conflict):
    """An organization without an owner could not be administered any more. Spec: D45

    The sentence names what the one who asked can do: the owner who wants out (`themselves`), or support staff.
    """

    code = "last_owner"

    def __init__(self, *, themselves: bool) -> None:
        super().__init__(
            "You are the only owner, and an organization keeps one. Ask whoever runs this service to add another"
            " owner, or delete the organization if it is no longer needed."
            if themselves
            else "An organization keeps an owner. Add another one first, with `manage.py add_member --role owner`."
        )


class CannotChangeOwnRole(Forbidden):
    """Nobody promotes or demotes themselves. Spec: §4.4 · D44"""

    code, message = "cannot_change_own_role", "You cannot change your own role."


class DeactivatedMember(Conflict):
    """A person who cannot sign in cannot be the owner that every organization has. Spec: D154"""

    code, message = "member_deactivated", "This person is deactivated and cannot become an owner."


class DeactivatedPerson(Conflict):
    """Operators give nothing to people who are shut out; `ids` are all of them who have the address."""

    code = "person_deactivated"

    def __init__(self, email: str, ids: Sequence[UUID]) -> None:
        named = " or ".join(str(key) for key in ids)
        super().__init__(
            f"The person with the address {email} is deactivated. Nothing was changed."
            f" `manage.py reactivate_user {named}` lets the person sign in again."
        )


class TeamNameTaken(Conflict):
    """Another team of the organization has this name. Spec: D60"""

    code, message = "team_name_taken", "A team of this organization already has this name."


class AllowlistChanged(Conflict):
    """Somebody changed the list while it was being edited; `by` is their name, or empty. Spec: ux.md 7"""

    code, message = "allowlist_changed", "Somebody changed this list meanwhile."

    def __init__(self, by: str = "") -> None:
        self.by = by
        super().__init__(f"{by} changed this list meanwhile." if by else None)


class ToolsChanged(Conflict):
    """The vendor's tools are not those that were shown. Spec: ux.md 7"""

    code, message = "tools_changed", "The vendor's tools changed again meanwhile. Look at them once more."


class InvitationNotFound(NotFound):
    """No such link, or it was revoked. Spec: D54"""

    code, message = "invitation_not_found", "This invitation does not exist. Ask for a new link."


class InvitationGone(DomainError):
    """It was good once. Spec: D54"""

    status = 410


class InvitationExpired(InvitationGone):
    """Its time is over. Spec: D54"""

    code, message = "invitation_expired", "This invitation has expired. Ask for a new link."


class InvitationUsed(InvitationGone):
    """Everybody it was for has joined. Spec: D54"""

    code, message = "invitation_used", "This invitation was already used. Ask for a new link."


class InvitationEmailMismatch(Forbidden):
    """It was made for another address, or for this one and nobody vouches that it is the person's. Spec: D47, D54"""

    code = "invitation_email_mismatch"
    message = (
        "This invitation is for an e-mail address that your sign-in does not confirm as yours. Sign in with that"
        " address, or ask for a new link."
    )


class InvitationBeforeRemoval(Forbidden):
    """It was made before this person was removed: the removal ended it. Spec: D162"""

    code = "invitation_before_removal"
    message = "You were removed from this organization after this invitation was made. Ask for a new invitation."
