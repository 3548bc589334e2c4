"""Vendors of one revision of MCP each, made with the SDKs, behind one list; each comes back in the other revision.

docs/decisions/0106
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e import agent
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.vendors import servers
from tests.vendors.processes import PLAIN_HTTP, RunningServer, running_server
from tests.vendors.wire_tap import WireTap, wire_tap

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")
pytestmark = [
    pytest.mark.one_back_end,
    pytest.mark.skipif(shutil.which("node") is None, reason="a machine without Node.js goes without"),
]

PROGRAMS = {
    "python": (sys.executable, str(servers.HERE / "programs/modern_server.py")),
    "node": ("node", str(servers.HERE / "programs/one_era_server.mjs")),
}
CALLERS = 6


class Vendor:
    """A running vendor behind a tap."""

    def __init__(self, slug: str, era: str, stack: contextlib.ExitStack) -> None:
        self.slug, self.era, self._stack = slug, era, stack
        self.server = self._start()
        self.tap: WireTap = stack.enter_context(wire_tap(self._port()))

    def come_back(self) -> None:
        """Dead between two instructions; then there is one that speaks only the other revision."""
        os.killpg(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()
        self.era = "legacy" if self.era == "modern" else "modern"
        self.server = self._start()
        self.tap.target_port = self._port()

    def ran(self) -> int:
        """How often its tool ran since its start."""
        count: int = httpx.get(f"{self.server.origin}/_stats", **PLAIN_HTTP, timeout=5.0).json()["ran"].get("echo", 0)
        return count

    def _start(self) -> RunningServer:
        program = PROGRAMS[self.slug]
        started = running_server(f"{self.slug}-{self.era}", lambda port: (*program, self.era, str(port)), has_stats)
        return self._stack.enter_context(started)

    def _port(self) -> int:
        port = urlsplit(self.server.origin).port
        assert port is not None
        return port


def has_stats(http: httpx.Client, origin: str) -> bool:
    return http.get(f"{origin}/_stats").status_code == 200


@pytest.fixture(scope="module")
def vendors(gateway: Gateway) -> Iterator[list[Vendor]]:
    with contextlib.ExitStack() as stack:
        made = [Vendor("python", "modern", stack), Vendor("node", "legacy", stack)]
        gateway.operator.run("load_catalog", text="".join(keyless_catalog(one.slug, one.tap.mcp_url) for one in made))
        yield made


def test_each_vendor_is_spoken_to_as_it_is_and_may_come_back_as_the_other(
    gateway: Gateway, vendors: list[Vendor]
) -> None:
    client = gateway.new_service_client({vendor.slug: {} for vendor in vendors})
    with gateway.web.client() as http:

        def call(slug: str) -> None:
            answer = agent.call(http, client.agent_key, f"{slug}_echo", words="grüße")
            assert agent.result(answer)["content"][0]["text"] == "grüße"

        listed = agent.result(agent.rpc(http, client.agent_key, "tools/list"))["tools"]
        assert {"python_echo", "node_echo"} <= {tool["name"] for tool in listed}
        for _ in range(3):
            for vendor in vendors:
                before = vendor.tap.methods()
                with ThreadPoolExecutor(CALLERS) as pool:
                    list(pool.map(call, [vendor.slug] * CALLERS))
                assert vendor.ran() == CALLERS, vendor.era
                since = vendor.tap.methods() - before
                is_first = not before["tools/call"]
                assert since["server/discover"] == (0 if is_first else 1), (vendor.slug, vendor.era)
                assert since["initialize"] == (0 if is_first or vendor.era == "modern" else 1)
                vendor.come_back()
