"""The sign-in at vendors before the conformance suite of the protocol's own project, in its newest release.

The suite plays the vendor and its authorization server, and the gateway is the client: an admin connects the address,
the browser follows the redirects, and an agent calls a tool.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients import programs
from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import deployment
from tests.e2e.shared_gateway import Gateway
from tests.e2e.vendor_walk import Walk

pytest_plugins = ("tests.e2e.fixtures",)
pytestmark = pytest.mark.one_back_end

SUITE = programs.MODULES / "@modelcontextprotocol/conformance/dist/index.js"
PROGRAM = programs.HERE / "python/asks_gateway.py"
MISSES = programs.HERE / "conformance_misses_sign_in.yml"
DEADLINE_S = 180.0
SECRET_VARIABLE = "CONFORMANCE_CLIENT_SECRET"
# By revision, how many scenarios of this kind it requires.
REQUIRED = {"2025-11-25": 14, "2026-07-28": 25}
# The gateway must not get to a result there.
REFUSED = {
    *("auth/resource-mismatch", "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected"),
    *("auth/iss-normalized", "auth/metadata-issuer-mismatch", "auth/scope-retry-limit"),
}
VENDOR = """
[[vendor]]
slug = "{slug}"
name = "{slug}"
url = "{url}"
docs_url = "https://vendor.example/docs"
timeout_seconds = 10
[vendor.oauth]
{more}
"""


@dataclass
class Drives:
    """Drives the gateway for the scenarios that the suite runs, one after the other."""

    gateway: Gateway
    scenarios: set[str]
    has_result: dict[str, bool] = field(default_factory=dict)
    trails: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def drive(self, name: str, url: str, context: dict[str, str]) -> dict[str, Any]:
        if name not in self.scenarios:  # the suite runs others beside them
            return {"has_result": False, "trail": []}
        with self._lock:
            walk = Walk(self.gateway, self._vendor(name, url, context), self.gateway.new_service_client({}))
            self.trails[name] = walk.trail
            self.has_result[name] = walk.reaches_a_result()
            return {"has_result": self.has_result[name], "trail": walk.trail}

    def _vendor(self, name: str, url: str, context: dict[str, str]) -> str:
        """The slug of a new vendor; a client that was registered by hand is in its entry."""
        slug = f"v{len(self.trails)}"
        self.gateway.operator.run(
            "load_catalog", text=VENDOR.format(slug=slug, url=url, more=client_lines(name, context))
        )
        return slug


def client_lines(name: str, context: dict[str, str]) -> str:
    if name == "auth/basic-cimd":
        # The suite knows one address only, of a document that is not ours.
        return 'client_id = "https://conformance-test.local/client-metadata.json"'
    if "client_id" not in context:
        return ""
    lines = {"client_id": context["client_id"], "issuer": context["issuer"], "client_secret_env": SECRET_VARIABLE}
    return "\n".join(f'{key} = "{value}"' for key, value in lines.items())


@pytest.fixture(scope="module")
def signing_in(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose environment has the secret of the client that one scenario registers by hand."""
    folder = tmp_path_factory.mktemp("signing-in") / "var"
    variables = {SECRET_VARIABLE: "pre-registered-secret"}
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(deployment(template, folder))
        operator = stack.enter_context(made.operator(**variables))
        yield Gateway(made, stack.enter_context(made.web(**variables)), operator, ())


@contextlib.contextmanager
def listening(drives: Drives) -> Iterator[str]:
    """The address that a client program tells its scenario to."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            scenario = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(drives.drive(scenario["name"], scenario["url"], scenario["context"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("revision", REQUIRED)
def test_vendors_are_signed_in_to_as_the_revision_requires(signing_in: Gateway, tmp_path: Path, revision: str) -> None:
    node = programs.newer_node()
    if node is None:
        programs.skip_without_newer_node()
    scored = required(node, revision)
    assert len(scored) == REQUIRED[revision]
    drives = Drives(signing_in, scored)
    with listening(drives) as address:
        client = shlex.join([sys.executable, "-I", "-S", str(PROGRAM), address])
        options = ("--requirements", revision, "--timeout", "120000", "-o", str(tmp_path / "results"))
        variables = programs.environment(tmp_path, "nobody@example.com")
        finished = programs.run((node, str(SUITE), "client", "--command", client, *options), variables, DEADLINE_S)
    statuses = statuses_in(tmp_path / "results")
    assert drives.has_result.keys() == scored, str(finished)
    missed = {name for name in scored if not statuses[name] <= {"SUCCESS", "INFO", "SKIPPED"}}
    assert missed == known_misses(), (drives.trails, str(finished))
    assert {name for name in scored if not drives.has_result[name]} == REFUSED & scored, drives.trails


def statuses_in(results: Path) -> dict[str, set[str]]:
    """The statuses of all checks, by scenario."""
    found: dict[str, set[str]] = {}
    for path in sorted(results.rglob("checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.relative_to(results).as_posix())
        found[name] = {check["status"] for check in json.loads(path.read_text())}
    return found


def required(node: str, revision: str) -> set[str]:
    """The scenarios of sign-ins that count for the revision, as the suite itself lists them."""
    listed = subprocess.run(
        [node, str(SUITE), "list", "--client", "--requirements", revision], capture_output=True, text=True, check=True
    )
    scored, _, _ = listed.stdout.partition("never scored")
    return set(re.findall(r"- (auth/\S+)", scored))


def known_misses() -> set[str]:
    return set(yaml.safe_load(MISSES.read_text())["client"] or [])
