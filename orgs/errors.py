"""Pure: refusals that only organizations know."""

from __future__ import annotations

from gateway.lib.errors import Conflict, DomainError, Forbidden, NotFound


class OrganizationLimit(Conflict):
    """One person owns as many organizations as we allow. Spec: D36"""

    code, message = "org_limit", "You already created as many organizations as one person may."


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


class LastClientGrant(Conflict):
    """A service account whose list became empty would be restricted no more. Spec: D34"""

    code = "last_grant"
    message = (
        "This is the last vendor on the service account's list. Delete the service account to stop it, or replace"
        " its list by an empty one to let it use every connected vendor."
    )


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
