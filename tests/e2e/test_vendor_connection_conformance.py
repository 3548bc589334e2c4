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


@pytest.mark.parametrize("scenario", CHECKS)
@pytest.mark.parametrize("suite", SUITES)
def test_a_server_is_spoken_to_as_the_protocol_asks(suite: str, scenario: str, tmp_path: Path) -> None:
    node = programs.newer_node()
    if node is None:
        programs.skip_without_newer_node()
    command = (node, str(SUITES[suite]), "client", "--command", CLIENT, "--scenario", scenario)
    variables = programs.environment(tmp_path, "nobody@example.com")
    finished = programs.run((*command, "-o", str(tmp_path / "results")), variables)
    assert finished.exit_code == 0, str(finished)
    (path,) = tmp_path.rglob("checks.json")
    checks = json.loads(path.read_text())
    assert {check["id"] for check in checks if check["status"] == "SUCCESS"} >= CHECKS[scenario], str(finished)
    assert {check["status"] for check in checks} <= {"SUCCESS", "INFO", "SKIPPED"}, str(finished)
