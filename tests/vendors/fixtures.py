"""Session-wide fixtures over tests/vendors/servers.py. A test module asks for them by name:

    pytest_plugins = ("tests.vendors.fixtures",)

Each process of a parallel run starts servers of its own, on ports of its own. Servers keep counts and tenants for the
whole session: tests take a fresh API key each and compare counts before and after.

Nothing is asserted here, and an import by another module must not turn into a warning: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.factories.provider import forget_provider
from tests.vendors import servers
from tests.vendors.processes import RunningServer
from tests.vendors.servers import SUITE_ORIGIN, DemoIdentityProvider, DemoVendor, OAuthVendor


@pytest.fixture(scope="session")
def everything_server() -> Iterator[RunningServer]:
    """server-everything; the one part that a machine without Node.js does without."""
    if not servers.has_node():
        pytest.skip("this machine has no Node.js, which server-everything runs on")
    with servers.everything_server() as server:
        yield server


@pytest.fixture(scope="session")
def time_server() -> Iterator[RunningServer]:
    """mcp-server-time behind mcp-proxy."""
    with servers.time_server() as server:
        yield server


@pytest.fixture(scope="session")
def oauth_vendor_process() -> Iterator[OAuthVendor]:
    """The vendor that people sign in to."""
    with servers.oauth_vendor_server() as vendor:
        yield vendor


@pytest.fixture
def oauth_vendor(oauth_vendor_process: OAuthVendor) -> OAuthVendor:
    """The same, without faults from an earlier test."""
    oauth_vendor_process.control(lifetime_s=3600, refresh_pause_s=0.0, refresh_fault="", grace=False)
    oauth_vendor_process.control(scopes="", wanted="write", refused='"name":"write"')
    return oauth_vendor_process


@pytest.fixture(scope="session")
def demo_vendor() -> Iterator[DemoVendor]:
    """The demo vendor server."""
    with servers.demo_vendor_server() as vendor:
        yield vendor


@pytest.fixture(scope="session")
def demo_identity_provider() -> Iterator[DemoIdentityProvider]:
    """The demo identity provider, for a client at SUITE_ORIGIN. For another origin use the context manager."""
    with servers.demo_identity_provider([SUITE_ORIGIN]) as provider:
        yield provider


@pytest.fixture
def idp(demo_identity_provider: DemoIdentityProvider, settings: LazySettings) -> Iterator[DemoIdentityProvider]:
    """The demo identity provider, configured as ours."""
    settings.OIDC_OP_DISCOVERY_URL = demo_identity_provider.discovery_url
    settings.OIDC_RP_CLIENT_ID = demo_identity_provider.client_id
    settings.OIDC_RP_CLIENT_SECRET = demo_identity_provider.client_secret
    forget_provider()
    yield demo_identity_provider
    forget_provider()
