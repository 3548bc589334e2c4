"""Pure: the five scopes of a credential. Spec: §5 (7)"""

from enum import StrEnum


class CredentialScope(StrEnum):
    # Most general first: lists are sorted in this order.
    ORGANIZATION = "organization"
    TEAM = "team"
    NAMED_KEY = "named_key"
    # Only connections have it: what a person signed in to. Spec: D160
    PERSON = "person"
    SERVICE_CLIENT = "service_client"


# The scopes at which fields are typed in.
TYPED_SCOPES = tuple(scope for scope in CredentialScope if scope is not CredentialScope.PERSON)
