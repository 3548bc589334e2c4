"""An organization with a connected vendor and a service client, as the hot path needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.sealing import seal_fields
from credentials.services.credentials import store_credential
from credentials.vendor_check import CheckResult, Verdict
from gateway.catalog import registry
from gateway.coordination import backend as registry_of_epochs
from gateway.coordination import epochs
from gateway.lib import clock, secrets
from oauth_ext.models import AgentKey, Client
from oauth_ext.models.client import SERVICE_CLIENT_ID_PREFIX
from oauth_ext.services.agent_keys import random_parts
from oauth_ext.services.service_clients import CLIENT_ID_CHARACTERS
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
    """Store a credential; by default the key that the fake vendor accepts. `more` are arguments of the service, and
    `validated`.
    """
    arguments = dict(more or {})
    if arguments.pop("validated", False):
        arguments["check"] = CheckResult(Verdict.VALIDATED, "The vendor accepted the credentials.")
    return store_credential(
        actor=owner,
        organization=organization,
        vendor=registry.known_vendor(slug),
        scope=scope,
        fields=fields or {"apiKey": "right-key"},
        **arguments,
    )


@transaction.atomic
def make_connected_tenant(organization: Organization, owner: User, url: str, *, timeout_s: int = 5) -> Tenant:
    """The vendor at `url` is in the catalog, a new organization has its key, and a service client may call it.

    One transaction, and the rows alone: it precedes nearly every test of the hot path.
    """
    load_vendor(url, timeout_s=timeout_s)
    _store_key(organization, owner)
    return make_tenant(organization, owner)


def _store_key(organization: Organization, owner: User) -> None:
    """As the service stores the organization's first credential, without its questions to the database."""
    scope = CredentialScope.ORGANIZATION
    credential = Credential(organization=organization, vendor="fake", scope=scope.value, created_by=owner)
    credential.data_key_version, credential.sealed = seal_fields(
        organization_id=organization.id,
        vendor=credential.vendor,
        scope=scope,
        record_id=credential.id,
        fields={"apiKey": "right-key"},
    )
    credential.save(force_insert=True)


def make_tenant(organization: Organization, owner: User, name: str = "build bot") -> Tenant:
    """A service client with an agent key: the rows alone, which take a tenth of the services' statements."""
    now, client_secret = clock.now(), secrets.random_url_safe()
    client = Client.objects.create(
        client_id=SERVICE_CLIENT_ID_PREFIX + secrets.random_base62(CLIENT_ID_CHARACTERS),
        client_secret=client_secret,
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS,
        organization=organization,
        name=name,
        created_by=owner,
        expires_at=now + timedelta(days=settings.SERVICE_CLIENT_DEFAULT_DAYS),
    )
    key = random_parts()
    AgentKey.objects.create(
        client=client,
        prefix=key.prefix,
        secret_sha256=secrets.sha256(key.secret),
        created_by=owner,
        created_at=now,
    )
    return Tenant(organization, owner, client, client_secret, key.text())


def restrict_tools(organization: Organization, *tools: str, vendor: str = "fake", role: str = "member") -> None:
    """Set an allowlist, seen by the next call in every process."""
    ToolAllowlist.objects.update_or_create(
        organization=organization, vendor=vendor, role=role, defaults={"tools": list(tools)}
    )
    registry_of_epochs.current().bump_epochs([epochs.organization(organization.id)])
