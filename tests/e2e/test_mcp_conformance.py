"""The MCP endpoints before the conformance suite of the protocol's own project, in its stable and its newest release.

The vendor behind the gateway has what the suite asks for, under names that carry its prefix already. Its addresses are
its own, without the gateway's prefix: only one vendor has them.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from tests.clients import programs
from tests.e2e.agent import ServiceClient
from tests.e2e.shared_gateway import Gateway, keyless_catalog
from tests.vendors.servers import conformance_server

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

STABLE = programs.MODULES / "@modelcontextprotocol/conformance-stable/dist/index.js"
NEWEST = programs.MODULES / "@modelcontextprotocol/conformance/dist/index.js"
BEARER = programs.NODE_PROGRAMS / "bearer.mjs"
MISSES = programs.HERE / "conformance_misses.yml"
MODERN_MISSES = programs.HERE / "conformance_misses_modern.yml"
# Tools under two prefixes: the suite looks for names that begin in two ways. Resources of one vendor alone.
SLUGS = {"test": "everything", "json": "tools", "trigger": "changes"}
# The tools that change a list have names that begin with "test_trigger". Their vendor announces it on the stream of the
# call, as the earlier revisions have it.
MORE = {"trigger": ('tool_prefix = "trigger"', 'tool_prefix = "test_trigger"\nnewest_protocol = false')}
KINDS = ["elicitation", "sampling", "roots"]  # of questions, which the scenarios ask
REVISION = "2025-11-25"
MODERN_REVISION = "2026-07-28"
DEADLINE_S = 240.0
# The newest suite runs it and counts it for nothing: it notes that streams end with their answer.
UNSCORED = "server-sse-polling"
# Run for no score with MODERN_REVISION. The first fails: a root of an input schema loses what model APIs refuse.
UNSCORED_MODERN = {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"}


@pytest.fixture(scope="module")
def service_client(gateway: Gateway) -> Iterator[ServiceClient]:
    """A service client that sees what the suite asks for, and nothing else."""
    with contextlib.ExitStack() as servers:
        for slug, offers in SLUGS.items():
            server = servers.enter_context(conformance_server(offers))
            catalog = keyless_catalog(slug, server.mcp_url).replace(*MORE.get(slug, ("", "")))
            gateway.operator.run("load_catalog", text=catalog)
        client = gateway.new_service_client({slug: {} for slug in SLUGS})
        for slug in SLUGS:
            gateway.operator.run("let_ask", org_id=client.org_id, vendor=slug, kinds=KINDS)
        yield client


def outcome(
    gateway: Gateway, service_client: ServiceClient, suite: Path, folder: Path, options: Sequence[str]
) -> tuple[programs.Finished, dict[str, list[str]]]:
    """How the suite ended, and the statuses of all checks by scenario. Skips where there is no Node.js for it."""
    node = programs.newer_node()
    if node is None:
        programs.skip_without_newer_node()
    results = folder / "results"
    command = (node, "--import", str(BEARER), str(suite), "server", "--url", gateway.web.mcp_url, *options)
    variables = programs.environment(folder, "nobody@example.com", {"MCP_BEARER": service_client.agent_key})
    finished = programs.run((*command, "-o", str(results)), variables, DEADLINE_S)
    statuses: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(results.rglob("checks.json")):
        found = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", path.parent.name)
        assert found is not None, path.parent.name
        statuses[found[1]] += [check["status"] for check in json.loads(path.read_text())]
    return finished, dict(statuses)


def missed(statuses: dict[str, list[str]]) -> set[str]:
    """The scenarios with a check that fails or warns; a check that does not apply gives no verdict."""
    return {name for name, seen in statuses.items() if not set(seen) <= {"SUCCESS", "INFO", "SKIPPED"}}


def known_misses(misses: Path = MISSES) -> list[str]:
    """The names in the list of misses."""
    names: list[str] = yaml.safe_load(misses.read_text())["server"]
    return names


@pytest.mark.parametrize(("misses", "count"), [(MISSES, 0), (MODERN_MISSES, 1)], ids=["earlier", "modern"])
def test_every_known_miss_has_a_reason(misses: Path, count: int) -> None:
    entries = [line for line in misses.read_text().splitlines() if line.lstrip().startswith("- ")]
    assert len(entries) == len(set(known_misses(misses))) == count
    assert all(re.fullmatch(r"  - [a-z0-9-]+ +# \S.*", line) for line in entries)


def test_the_stable_suite_passes_but_for_the_known_misses(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path
) -> None:
    finished, statuses = outcome(gateway, service_client, STABLE, tmp_path, ["--expected-failures", str(MISSES)])
    assert finished.exit_code == 0, str(finished)
    assert len(statuses) == 30
    assert missed(statuses) == set(known_misses()), str(finished)


def test_schemas_of_the_newest_dialect_arrive_whole(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path
) -> None:
    """One of the suite's two pending scenarios; the other is UNSCORED."""
    finished, statuses = outcome(gateway, service_client, STABLE, tmp_path, ["--scenario", "json-schema-2020-12"])
    assert finished.exit_code == 0, str(finished)
    assert list(statuses) == ["json-schema-2020-12"]
    assert missed(statuses) == set()


@pytest.mark.parametrize("suite", [STABLE, NEWEST], ids=["stable", "newest"])
def test_polling_is_noted_and_fails_nothing(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path, suite: Path
) -> None:
    """The call's answer leaves nothing to ask for."""
    finished, statuses = outcome(gateway, service_client, suite, tmp_path, ["--scenario", UNSCORED])
    assert finished.exit_code == 0, str(finished)
    assert statuses == {UNSCORED: ["INFO", "INFO", "INFO"]}, str(finished)
    assert "0 failed, 0 warnings" in finished.output, str(finished)


def test_the_newest_suite_passes_what_the_revision_requires_but_for_the_known_misses(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path
) -> None:
    options = ["--requirements", REVISION, "--expected-failures", str(MISSES)]
    finished, statuses = outcome(gateway, service_client, NEWEST, tmp_path, options)
    assert finished.exit_code == 0, str(finished)
    assert len(statuses) == 33, str(finished)
    assert missed(statuses) == set(known_misses()), str(finished)


def test_the_newest_suite_passes_what_the_modern_revision_requires_but_for_the_known_misses(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path
) -> None:
    options = ["--requirements", MODERN_REVISION, "--expected-failures", str(MODERN_MISSES)]
    finished, statuses = outcome(gateway, service_client, NEWEST, tmp_path, options)
    assert finished.exit_code == 0, str(finished)
    scored = {name: seen for name, seen in statuses.items() if not is_unscored(name)}
    assert len(scored) == 37, str(finished)
    assert missed(scored) == set(known_misses(MODERN_MISSES)), str(finished)
    assert "SUCCESS" in scored["server-stateless"]


def is_unscored(name: str) -> bool:
    """Whether a scenario is run beside what MODERN_REVISION requires."""
    return name.startswith("tasks-") or name in UNSCORED_MODERN


@pytest.mark.parametrize("scenario", ["http-header-validation", "http-custom-header-server-validation"])
def test_headers_are_checked_as_the_newest_suite_asks(
    gateway: Gateway, service_client: ServiceClient, tmp_path: Path, scenario: str
) -> None:
    """No part of what is scored."""
    finished, statuses = outcome(gateway, service_client, NEWEST, tmp_path, ["--scenario", scenario])
    assert finished.exit_code == 0, str(finished)
    assert list(statuses) == [scenario]
    assert missed(statuses) == set(), str(finished)
