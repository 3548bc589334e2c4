"""A vendor, teams and service clients to hang credentials on, and one way to store at every scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from credentials.credential_scope import TYPED_SCOPES, CredentialScope
from credentials.models import Credential
from credentials.services.credentials import store_credential
from credentials.vendor_check import CheckResult, Verdict
from gateway.catalog.vendor import CredentialField, HeaderTemplate, Vendor
from gateway.lib import clock
from oauth_ext.models import Client
from orgs.models import Organization, Team
from tests.factories.cast import Cast

# Every value a test stores contains this, so that one search finds them all.
SECRET = "pl4in-v4lue-that-must-not-leak"


def make_vendor(slug: str = "acme") -> Vendor:
    """A vendor with a secret, an optional and a choice field."""
    return Vendor(
        slug=slug,
        name=slug.title(),
        url="https://vendor.example/mcp",
        tool_prefix=slug,
        headers=(HeaderTemplate("X-Api-Key", "{apiKey}"), HeaderTemplate("X-Tenant", "{tenant}")),
        fields=(
            CredentialField("apiKey", "API key", secret=True, required=True),
            CredentialField("tenant", "Tenant", secret=False, required=False),
            CredentialField("platform", "Platform", secret=False, required=False, options=("eu", "us")),
        ),
    )


def make_service_client(organization: Organization, name: str = "Robot") -> Client:
    """A service client of the organization."""
    return Client.objects.create(
        organization=organization,
        name=name,
        client_id=f"svc_{organization.id.hex}_{name.lower()}",
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS,
        expires_at=clock.now() + timedelta(days=90),
    )


@dataclass
class Setting:
    """The cast's first organization with what credentials hang on; `store` stores as an owner."""

    cast: Cast
    vendor: Vendor
    team: Team
    other_team: Team
    foreign_team: Team
    service_client: Client
    foreign_client: Client

    def store(self, scope: CredentialScope = CredentialScope.ORGANIZATION, **changes: Any) -> Credential:
        """A stored credential of `scope` for `acme`; `changes` replace arguments of the service."""
        is_other = changes.get("organization") == self.cast.other_org
        arguments: dict[str, Any] = {
            "actor": self.cast.user("other_owner" if is_other else "owner"),
            "organization": self.cast.org,
            "vendor": self.vendor,
            "scope": scope,
            "fields": {"apiKey": SECRET},
        }
        if scope is CredentialScope.TEAM:
            arguments["team"] = self.team
        if scope is CredentialScope.SERVICE_CLIENT:
            arguments["service_client"] = self.service_client
        if scope is CredentialScope.NAMED_KEY:
            arguments["name"] = "Reporting"
        if changes.pop("validated", False):
            arguments["check"] = CheckResult(Verdict.VALIDATED, "The vendor accepted the credentials.", 2)
        return store_credential(**{**arguments, **changes})

    def store_everywhere(self) -> list[Credential]:
        """One credential of every scope."""
        return [self.store(scope) for scope in TYPED_SCOPES]


def make_setting(cast: Cast) -> Setting:
    """The rows around the credentials."""
    return Setting(
        cast=cast,
        vendor=make_vendor(),
        team=Team.objects.create(organization=cast.org, name="Night shift"),
        other_team=Team.objects.create(organization=cast.org, name="Day shift"),
        foreign_team=Team.objects.create(organization=cast.other_org, name="Night shift"),
        service_client=make_service_client(cast.org),
        foreign_client=make_service_client(cast.other_org),
    )
