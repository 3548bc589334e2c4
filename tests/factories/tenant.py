"""An organization with a connected vendor and a service client, as the hot path needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.services.credentials import store_credential
from gateway.catalog import registry
from gateway.coordination import backend as registry_of_epochs
from gateway.coordination import epochs
from oauth_ext.models import Client
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import create_service_client
from orgs.models import Organization, ToolAllowlist, User
from tests.factories.catalog_text import load_catalog

CATALOG = """
[[vendor]]
slug = "{slug}"
name = "{name}"
url = "{url}"
tool_prefix = "{prefix}"
docs_url = "https://vendor.example/docs"
timeout_seconds = {timeout_s}
[[vendor.headers]]
name = "X-Api-Key"
value = "{{apiKey}}"
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
"""


@dataclass
class Tenant:
    """`agent_key` and `client_secret` are the plain values."""

    organization: Organization
    owner: User
    client: Client
    client_secret: str
    agent_key: str


def load_vendor(url: str, *, slug: str = "fake", prefix: str | None = None, timeout_s: int = 5) -> None:
    """Put a vendor into the catalog."""
    text = CATALOG.format(slug=slug, name=slug.title(), url=url, prefix=prefix or slug, timeout_s=timeout_s)
    load_catalog(text, "test catalog")


def connect(
    organization: Organization,
    owner: User,
    slug: str = "fake",
    scope: CredentialScope = CredentialScope.ORGANIZATION,
    more: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Credential:
    """Store a credential; by default the key that the fake vendor accepts. `more` are arguments of the service."""
    return store_credential(
        actor=owner,
        organization=organization,
        vendor=registry.known_vendor(slug),
        scope=scope,
        fields=fields or {"apiKey": "right-key"},
        **(more or {}),
    )


def make_tenant(organization: Organization, owner: User, name: str = "build bot") -> Tenant:
    """A service client with an agent key."""
    created = create_service_client(actor=owner, organization=organization, name=name)
    minted = mint_agent_key(actor=owner, client=created.client)
    return Tenant(organization, owner, created.client, created.client_secret, minted.agent_key)


def restrict_tools(organization: Organization, *tools: str, vendor: str = "fake", role: str = "member") -> None:
    """Set an allowlist, seen by the next call in every process."""
    ToolAllowlist.objects.update_or_create(
        organization=organization, vendor=vendor, role=role, defaults={"tools": list(tools)}
    )
    registry_of_epochs.current().bump_epochs([epochs.organization(organization.id)])
