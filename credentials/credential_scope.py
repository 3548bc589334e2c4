"""Pure: the four scopes of a credential. Spec: §5 (7)"""

from enum import StrEnum


class CredentialScope(StrEnum):
    # Most general first: lists are sorted in this order.
    ORGANIZATION = "organization"
    TEAM = "team"
    NAMED_KEY = "named_key"
    SERVICE_CLIENT = "service_client"
