"""Vendors in every state of health, as the monitor would have left them."""

from __future__ import annotations

from datetime import timedelta

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from gateway.coordination.store import CoordinationStore
from gateway.lib import clock
from orgs.models import Organization
from proxy.control_plane.health import state_cache as states
from proxy.control_plane.health.states import HealthStatus, VendorHealth
from tests.factories.catalog_text import load_catalog
from tests.factories.tenant import load_vendor

HOSTED = """
[[vendor]]
slug = "{slug}"
name = "{name}"
url = "https://{{host}}/mcp"
docs_url = "https://vendor.example/docs"
[[vendor.fields]]
name = "host"
label = "Host"
secret = false
required = true
"""


def connected_vendor(organization: Organization, slug: str, *, hosted: bool = False) -> Credential:
    """A vendor of the catalog that the organization connected; its credential opens nothing.

    `hosted`: at an address that the customer supplies.
    """
    if hosted:
        load_catalog(HOSTED.format(slug=slug, name=slug.title()), "test catalog")
    else:
        load_vendor("http://127.0.0.1:9/mcp", slug=slug)
    return Credential.objects.create(
        organization=organization,
        vendor=slug,
        scope=CredentialScope.ORGANIZATION.value,
        data_key_version=1,
        sealed=b"",
    )


def put_health(
    store: CoordinationStore,
    slug: str,
    status: HealthStatus,
    *,
    latency_ms: int = 12,
    version: str = "1.2",
    error_detail: str | None = None,
    age_s: int = 10,
    remark: str = "",
) -> VendorHealth:
    """The state, checked `age_s` ago."""
    checked = clock.now() - timedelta(seconds=age_s)
    health = VendorHealth(status, checked, latency_ms, version, error_detail, remark=remark)
    states.write(store, slug, health)
    return health
