"""Pure: errors of organizations."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.lib.errors import Conflict, DomainError, Forbidden, NotFound
from gateway.lib.sentences import sentence


class OrganizationLimit(Conflict):
    """Spec: D36"""

    code = "org_limit"
    message = sentence(
        "You’ve reached the limit of organizations you can create. Delete one you no longer need, or ask someone else"
        " to create it."
    )


class LimitReached(Conflict):
    """The organization has reached its cap for rows of one kind. Spec: D161"""

    code = "limit_reached"

    def __init__(self, kind: str, cap: int) -> None:
        super().__init__(
            sentence(
                "This organization has reached its limit of %(cap)s %(kind)s. An operator can raise it.",
                cap=cap,
                kind=kind,
            )
        )


class LastOwner(Conflict):
    """The organization would lose its last owner. `themselves`: the actor is that owner. Spec: D45"""

    code = "last_owner"

    # The message names the next step for the owner who leaves, or for support staff.
    def __init__(self, *, themselves: bool) -> None:
        super().__init__(
            sentence(
                "You’re the only owner, and every organization needs one. Make someone else an owner first, or delete"
                " the organization."
            )
            if themselves
            else sentence(
                "Every organization needs an owner. Add another one first with `manage.py add_member --role owner`."
            )
        )


class CannotChangeOwnRole(Forbidden):
    """Spec: §4.4 · D44"""

    code, message = "cannot_change_own_role", sentence("You can’t change your own role. Another owner can.")


class DeactivatedMember(Conflict):
    """A deactivated person cannot become an owner. Spec: D154"""

    code, message = "member_deactivated", sentence("This person is deactivated and can’t become an owner.")


class DeactivatedPerson(Conflict):
    """A command names a deactivated person. `ids`: all deactivated people with the address."""

    code = "person_deactivated"

    def __init__(self, email: str, ids: Sequence[UUID]) -> None:
        named = " or ".join(str(key) for key in ids)
        super().__init__(
            sentence(
                "The person with the address %(email)s is deactivated. Nothing changed."
                " `manage.py reactivate_user %(named)s` lets the person sign in again.",
                email=email,
                named=named,
            )
        )


class OwnSession(Conflict):
    """A person ends the session of the request by signing out."""

    code, message = "own_session", sentence("This is the browser you are using. Sign out to end its session.")


class SessionEnded(Conflict):
    """Another browser ended the session of the request meanwhile."""

    code, message = "session_ended", sentence("This session has ended. Sign in again.")


class TeamNameTaken(Conflict):
    """Spec: D60"""

    code, message = "team_name_taken", sentence("Another team already has this name. Choose a different one.")


class HasAccess(Conflict):
    """Spec: D169"""

    code, message = "has_access", sentence("You already have access to this vendor.")


class VendorNotConnected(Conflict):
    """Spec: D169"""

    code, message = "vendor_not_connected", sentence("This vendor isn’t connected.")


class AccessRequestOpen(Conflict):
    """The person's earlier request for the vendor waits. Spec: D169"""

    code, message = "access_request_open", sentence("You’ve already asked for this vendor.")


class AccessRequestDecided(Conflict):
    """Spec: D169"""

    code, message = "access_request_decided", sentence("This request has already been decided.")


class AllowlistChanged(Conflict):
    """The list changed while it was edited; `by`: name of the editor, or empty. Spec: ux.md 7"""

    code, message = "allowlist_changed", sentence("Someone changed this list while you were editing.")

    def __init__(self, by: str = "") -> None:
        self.by = by
        super().__init__(sentence("%(by)s changed this list while you were editing.", by=by) if by else None)


class ToolsChanged(Conflict):
    """The vendor's tools differ from those that the reviewer saw. Spec: ux.md 7"""

    code, message = "tools_changed", sentence("The vendor’s tools have changed again. Review them again.")


class InvitationNotFound(NotFound):
    """The invitation does not exist or was revoked. Spec: D54"""

    code, message = "invitation_not_found", sentence("This link isn’t valid. Ask for a new one.")


class InvitationGone(DomainError):
    """Base of the two ends of a valid link. Spec: D54"""

    # 410 and not 404: the link was valid once.
    status = 410


class InvitationExpired(InvitationGone):
    code, message = "invitation_expired", sentence("This invitation has expired. Ask for a new link.")


class InvitationUsed(InvitationGone):
    code, message = "invitation_used", sentence("This invitation has already been used. Ask for a new link.")


class InvitationEmailMismatch(Forbidden):
    """The person's verified e-mail address is not the invitation's. Spec: D47, D54"""

    code = "invitation_email_mismatch"
    # The provider confirms another address, or does not confirm this one.
    message = sentence(
        "This invitation is for an email address that your sign-in doesn’t confirm as yours. Sign in with that"
        " address, or ask for a new link."
    )


class InvitationBeforeRemoval(Forbidden):
    """The person was removed after the invitation was made. Spec: D162"""

    code = "invitation_before_removal"
    message = sentence("You were removed from this organization after this invitation was created. Ask for a new one.")
