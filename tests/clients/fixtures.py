"""The product that clients sign in to, as `make run` starts it, once for the whole session:

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures", "tests.clients.fixtures")
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.clients.sign_in_gateway import Person, SignInGateway
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Web, deployment_of
from tests.e2e.started import started, used_back_ends

MAKE_RUN = ("make", "--no-print-directory", "run")


@pytest.fixture(scope="session")
def sign_in_gateway(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInGateway]:
    """A literal `make run` with the demo vendor and the demo identity provider, on free ports and in its own folder."""
    folder = tmp_path_factory.mktemp("make-run")
    with used_back_ends(template, folder / "var") as back_ends:
        # The environment that is there already; and documents of clients, as in production, where addresses are https.
        variables = {**back_ends, "VENV": sys.prefix, "CIMD_ENABLED": "1"}
        with started(folder, variables, command=MAKE_RUN) as start:
            start.wait_ready()
            made = deployment_of(start.variables)
            with made.operator() as operator:
                yield SignInGateway(made, Web(start.process, made.folder / "logs" / "web.log", made.origin), operator)


@pytest.fixture
def person(sign_in_gateway: SignInGateway) -> Person:
    """A person who has not signed in yet."""
    return sign_in_gateway.new_person()
