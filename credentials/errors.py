"""Pure: errors of credentials."""

from __future__ import annotations

from enum import StrEnum

from gateway.lib.errors import Conflict, DomainError, Invalid


class KeyNameTaken(Conflict):
    """Another named key of the vendor has this name. Spec: D65"""

    code, message = "key_name_taken", "A key of this vendor already has this name."


class TeamHasKey(Conflict):
    """The team is bound to another named key of the vendor. Spec: D65"""

    code, message = "team_has_key", "This team is already bound to another key of this vendor."


class CredentialRejected(DomainError):
    """Spec: D63"""

    code, message, status = "credential_rejected", "The vendor rejected these credentials. Nothing was stored.", 422


class EndpointNotAllowed(Invalid):
    """The fields lead to an address that outbound requests may not reach."""

    code, message = "endpoint_not_allowed", "These fields lead to an address that may not be used. Nothing was stored."


class UnusableReason(StrEnum):
    KEY_NOT_CONFIGURED = "key_not_configured"  # CREDENTIAL_KEYS lacks the key that wraps the data key
    DATA_KEY_MISSING = "data_key_missing"  # shredded, or lost
    DOES_NOT_OPEN = "does_not_open"  # altered, or moved here from another row


class UnusableCredential(DomainError):
    """A stored credential cannot be opened: never treated as "not connected" or as empty. Spec: D68"""

    code, status = "unusable_credential", 409

    def __init__(self, reason: UnusableReason) -> None:
        self.reason = reason
        super().__init__(f"The stored credential cannot be used ({reason.value}). Store it again.")
