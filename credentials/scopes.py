"""Pure: the four levels at which a credential may hang. Spec: §5 (7)"""

from __future__ import annotations

from enum import StrEnum


class CredentialScope(StrEnum):
    """Most general first."""

    ORGANIZATION = "organization"
    TEAM = "team"
    NAMED_KEY = "named_key"
    SERVICE_CLIENT = "service_client"
