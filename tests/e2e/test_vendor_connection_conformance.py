"""The connection to vendors before the conformance suite of the protocol's own project, which plays the server."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.clients import programs

pytestmark = pytest.mark.one_back_end

SUITES = {
    "stable": programs.MODULES / "@modelcontextprotocol/conformance-stable/dist/index.js",
    "newest": programs.MODULES / "@modelcontextprotocol/conformance/dist/index.js",
}
CLIENT = shlex.join([sys.executable, str(programs.HERE / "python/vendor_connection.py")])
# Checks that have to be there: the number of others differs from release to release.
CHECKS = {
    "initialize": {"mcp-client-initialization"},
    "tools_call": {"tool-add-numbers"},
    "sse-retry": {"client-sse-graceful-reconnect", "client-sse-retry-timing", "client-sse-last-event-id"},
}


# The same for MCP 2026-07-28, which the stable suite does not know.
MODERN = {
    "tools_call": {"tool-add-numbers"},
    "request-metadata": {"sep-2575-client-populates-meta", "sep-2575-client-retry-supported-version"},
    "http-standard-headers": {"sep-2243-client-includes-standard-headers"},
    "http-custom-headers": {"sep-2243-client-mirrors-designated-params", "sep-2243-client-base64-unsafe"},
    "http-invalid-tool-headers": {"sep-2243-client-reject-invalid-tool"},
    "json-schema-ref-no-deref": {"sep-2106-no-network-ref-deref"},
    "sep-2322-client-request-state": {"sep-2322-client-request-state-echoed", "sep-2322-client-no-state-omitted"},
}


@pytest.mark.parametrize("scenario", CHECKS)
@pytest.mark.parametrize("suite", SUITES)
def test_a_server_is_spoken_to_as_the_protocol_asks(suite: str, scenario: str, tmp_path: Path) -> None:
    assert succeeded(suite, scenario, tmp_path) >= CHECKS[scenario]


@pytest.mark.parametrize("scenario", MODERN)
def test_so_is_a_server_of_the_newest_revision(scenario: str, tmp_path: Path) -> None:
    assert succeeded("newest", scenario, tmp_path, "--spec-version", "2026-07-28") >= MODERN[scenario]


def succeeded(suite: str, scenario: str, folder: Path, *more: str) -> set[str]:
    """The checks that our client passed; it failed none."""
    node = programs.newer_node()
    if node is None:
        programs.skip_without_newer_node()
    command = (node, str(SUITES[suite]), "client", "--command", CLIENT, "--scenario", scenario, *more)
    variables = programs.environment(folder, "nobody@example.com")
    finished = programs.run((*command, "-o", str(folder / "results")), variables)
    assert finished.exit_code == 0, str(finished)
    (path,) = folder.rglob("checks.json")
    checks = json.loads(path.read_text())
    assert {check["status"] for check in checks} <= {"SUCCESS", "INFO", "SKIPPED"}, str(finished)
    return {check["id"] for check in checks if check["status"] == "SUCCESS"}
