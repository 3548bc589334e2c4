"""The organization, its teams and its service clients as holders of credentials, for API and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.selectors import CredentialSummary, credential_at, vendors_at
from gateway.catalog.vendor import Vendor
from oauth_ext.models import Client
from oauth_ext.selectors import service_client
from orgs.models import Organization, Team, User
from orgs.selectors import team
from proxy.control_plane.connect_vendor import Connected, connect_vendor


@dataclass(frozen=True, slots=True)
class CredentialHolder:
    """The owner of credentials of one scope. `team` and `service_client` are None at other scopes."""

    organization: Organization
    scope: CredentialScope
    team: Team | None = None
    service_client: Client | None = None

    @property
    def row(self) -> Organization | Team | Client:
        return self.team or self.service_client or self.organization

    @property
    def ids(self) -> dict[str, Any]:
        rows = {"team_id": self.team, "service_client_id": self.service_client}
        return {name: row and row.id for name, row in rows.items()}

    def holds(self, row: CredentialSummary) -> bool:
        return (row.scope, row.team_id, row.service_client_id) == (self.scope, *self.ids.values())

    def vendors(self) -> list[str]:
        """Sorted slugs. Spec: §4.6 · D66"""
        return vendors_at(self.organization, self.scope, **self.ids)

    def credential(self, vendor: str) -> Credential:
        """Raises: NotFound."""
        return credential_at(self.organization, vendor, self.scope, **self.ids)

    def connect(self, *, actor: User, vendor: Vendor, fields: Mapping[str, object], anyway: bool = False) -> Connected:
        """Raises: as `connect_vendor`."""
        return connect_vendor(
            actor=actor,
            organization=self.organization,
            vendor=vendor,
            fields=fields,
            scope=self.scope,
            team=self.team,
            service_client=self.service_client,
            anyway=anyway,
        )


# The holder that the path of a route names. Raises: NotFound.
HolderFinder = Callable[[Organization, Mapping[str, Any]], CredentialHolder]


def of_organization(organization: Organization, path: Mapping[str, Any]) -> CredentialHolder:
    return CredentialHolder(organization, CredentialScope.ORGANIZATION)


def of_team(organization: Organization, path: Mapping[str, Any]) -> CredentialHolder:
    return CredentialHolder(organization, CredentialScope.TEAM, team=team(organization, str(path["team_id"])))


def of_client(organization: Organization, path: Mapping[str, Any]) -> CredentialHolder:
    found = service_client(organization, path["client_id"])
    return CredentialHolder(organization, CredentialScope.SERVICE_CLIENT, service_client=found)
