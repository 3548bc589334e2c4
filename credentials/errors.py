"""Pure: errors of credentials."""

from __future__ import annotations

from enum import StrEnum

from gateway.lib.errors import Conflict, DomainError, Invalid
from gateway.lib.sentences import sentence


class KeyNameTaken(Conflict):
    """Another named key of the vendor has this name. Spec: D65"""

    code, message = (
        "key_name_taken",
        sentence("Another key for this vendor already has this name. Choose a different one."),
    )


class TeamHasKey(Conflict):
    """The team is bound to another named key of the vendor. Spec: D65"""

    code, message = (
        "team_has_key",
        sentence("This team already has another key for this vendor. Unassign that one first."),
    )


class CredentialRejected(DomainError):
    """Spec: D63"""

    code, message, status = (
        "credential_rejected",
        sentence("The vendor rejected these credentials. Nothing was saved."),
        422,
    )


class CredentialUnconfirmed(Conflict):
    """The vendor did not confirm new credentials, so the stored ones stay in force. Spec: D170"""

    code = "credential_unconfirmed"
    message = sentence("The vendor didn’t confirm these credentials. Your current ones stay active.")


class EndpointNotAllowed(Invalid):
    """The fields lead to an address that outbound requests may not reach."""

    code, message = (
        "endpoint_not_allowed",
        sentence("This address isn’t allowed. Nothing was saved."),
    )


class UnusableReason(StrEnum):
    KEY_NOT_CONFIGURED = "key_not_configured"  # CREDENTIAL_KEYS lacks the key that wraps the data key
    DATA_KEY_MISSING = "data_key_missing"  # shredded, or lost
    DOES_NOT_OPEN = "does_not_open"  # altered, or moved here from another row
    OTHER_ADDRESS = "other_address"  # the vendor's address is not the one that the token was issued for


class UnusableCredential(DomainError):
    """A stored credential cannot be opened: never treated as "not connected" or as empty. Spec: D68"""

    code, status = "unusable_credential", 409

    def __init__(self, reason: UnusableReason) -> None:
        self.reason = reason
        super().__init__(
            sentence("The saved credentials can’t be used (%(value)s). Save them again.", value=reason.value)
        )


class ConnectionEnded(DomainError):
    """The vendor no longer accepts the connection, or it has been disconnected."""

    code, status = "no_credentials", 403
    message = sentence("The vendor no longer accepts the connection. Sign in again.")


class VendorSignInFailed(DomainError):
    """The vendor or its authorization server does not let a sign-in begin or end well. Nothing is stored."""

    code, status = "vendor_sign_in_failed", 502
    message = sentence("Signing in to the vendor failed. Nothing was saved.")

    def __init__(self, reason: str) -> None:
        super().__init__(sentence("%(reason)s Nothing was saved.", reason=reason))


class VendorSignInGone(DomainError):
    """Used, expired, or of another browser or person: one error for all."""

    code, status = "vendor_sign_in_gone", 410
    message = sentence("This sign-in has expired or was already used. Start again from the vendor’s page.")


class ConnectionNotOffered(DomainError):
    """The vendor takes no sign-in at this level."""

    code, status = "connection_not_offered", 422
    message = sentence("This vendor can’t be connected this way.")


class ClientNotRegistered(ConnectionNotOffered):
    """The vendor takes sign-ins only through a client that an operator has registered there."""

    message = sentence(
        "No one can sign in to this vendor yet. An operator of this service must register a client there first."
    )


class SignInNeeded(ConnectionNotOffered):
    """The vendor takes no typed credentials."""

    message = sentence("You connect this vendor by signing in. Open its page, or My connections.")


class PeopleMayNotConnect(ConnectionNotOffered):
    """The organization's rules: people have no connections of their own at this vendor."""

    message = sentence("An admin has turned off personal connections to this vendor.")


class VendorServerChanged(Conflict):
    """The vendor's metadata names another authorization server than that of the first connection."""

    code = "vendor_server_changed"

    def __init__(self, former: str, found: str) -> None:
        super().__init__(
            sentence(
                "The vendor now asks to sign in at %(found)s instead of %(former)s."
                " An admin can allow it on the vendor’s page.",
                found=found,
                former=former,
            )
        )
