"""The gateway that clients sign in to, for the whole session:

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import deployment
from tests.e2e.shared_gateway import acme_catalog
from tests.vendors.processes import free_port
from tests.vendors.servers import DemoVendor, demo_identity_provider


@pytest.fixture(scope="session")
def sign_in_gateway(
    template: Template, tmp_path_factory: pytest.TempPathFactory, demo_vendor: DemoVendor
) -> Iterator[SignInGateway]:
    """The gateway that clients sign in to."""
    port = free_port()
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(demo_identity_provider([f"http://127.0.0.1:{port}"]))
        variables = {
            "OIDC_OP_DISCOVERY_URL": provider.discovery_url,
            "OIDC_RP_CLIENT_ID": provider.client_id,
            "OIDC_RP_CLIENT_SECRET": provider.client_secret,
            "CIMD_ENABLED": "1",  # as in production, where addresses begin with https
        }
        folder = tmp_path_factory.mktemp("sign-in") / "var"
        made = stack.enter_context(deployment(template, folder, port=port, variables=variables))
        operator = stack.enter_context(made.operator())
        operator.run("load_catalog", text=acme_catalog(demo_vendor))
        yield SignInGateway(made, stack.enter_context(made.web()), operator)


@pytest.fixture
def person(sign_in_gateway: SignInGateway) -> Person:
    """Somebody who has not signed in yet."""
    return sign_in_gateway.new_person()
