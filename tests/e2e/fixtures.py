"""Session-wide fixtures: the template of databases, the vendors, and one gateway that tests share.

    pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

A test that kills or starves a gateway makes a deployment of its own from the template.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import deployment
from tests.e2e.shared_gateway import Gateway, acme_catalog, keyless_catalog
from tests.vendors import servers
from tests.vendors.processes import RunningServer
from tests.vendors.servers import DemoVendor

# Small enough to be used up; each service client of a test has its own count.
LIMITS = {"TOOL_CALLS_PER_HOUR": "150", "WEB_PROCESSES": "2"}


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of the run know."""
    folder = tmp_path_factory.getbasetemp()
    # In a parallel run each process has a folder of its own inside this one.
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def template(run_folder: Path) -> Iterator[Template]:
    """A database with every table and no row but those of the shipped catalog."""
    made = Template(run_folder)
    yield made
    made.remove()


@pytest.fixture(scope="session")
def everything() -> Iterator[RunningServer | None]:
    """server-everything, or None on a machine without Node.js: then tests say that they go without it."""
    if not servers.has_node():
        yield None
        return
    with servers.everything_server() as server:
        yield server


@pytest.fixture(scope="session")
def gateway(
    template: Template,
    tmp_path_factory: pytest.TempPathFactory,
    demo_vendor: DemoVendor,
    time_server: RunningServer,
    everything: RunningServer | None,
) -> Iterator[Gateway]:
    """The gateway that tests share, with the demo vendor, the time server and, where there is Node.js, everything."""
    folder = tmp_path_factory.mktemp("gateway") / "var"
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(deployment(template, folder, variables=LIMITS))
        operator = stack.enter_context(made.operator())
        others = {"time": time_server} | ({"everything": everything} if everything else {})
        operator.run("load_catalog", text=acme_catalog(demo_vendor))
        for slug, server in others.items():
            operator.run("load_catalog", text=keyless_catalog(slug, server.mcp_url))
        web = stack.enter_context(made.web())
        yield Gateway(made, web, operator, ("acme", *others))
