"""Each import contract of pyproject.toml catches a violation that is planted for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.product import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {}"
# Contract number, file, planted line, and what the report names.
PLANTED = [
    ("1", "orgs/roles.py", "import proxy.outcomes", "orgs.roles -> proxy.outcomes"),
    ("1", "orgs/pages/teams.py", "import credentials.services.keys", "orgs.pages.teams -> credentials.services.keys"),
    ("1", "gateway/lib/clock.py", "import gateway.settings.env", "gateway.lib.clock -> gateway.settings.env"),
    ("2", "credentials/resolve.py", "import oauth_ext.tasks", "credentials.resolve -> oauth_ext.tasks"),
    ("2", "orgs/pages/teams.py", "import orgs.signin.views", "orgs.pages.teams -> orgs.signin.views"),
    ("2", "oauth_ext/pages/apps.py", "import oauth_ext.person_pages", "oauth_ext.pages.apps -> oauth_ext.person_pages"),
    ("3", "proxy/protocol/sse.py", "import aiohttp", "proxy.protocol.sse -> aiohttp"),
    ("3", "orgs/access_rules.py", "import psycopg", "orgs.access_rules -> psycopg"),
    ("3", "proxy/protocol/jsonrpc.py", "import sqlite3", "proxy.protocol.jsonrpc -> sqlite3"),
    ("4", "proxy/vendors/pool.py", "import orgs.models", "proxy.vendors.pool -> orgs.models"),
    ("4", "proxy/runtime.py", "import billing.entitlements", "proxy.runtime -> billing.entitlements"),
    ("4", "proxy/progress_relay.py", "import gateway.catalog.models", "proxy.progress_relay -> gateway.catalog.models"),
    ("5", "credentials/selectors.py", "import oauth2_provider.models", "credentials.selectors -> oauth2_provider"),
    ("6", "proxy/vendors/session.py", "import proxy.calls.admit", "No cycles are allowed in proxy.\n"),
    ("6", "proxy/vendors/bulkhead.py", TYPES.format("proxy.vendors.pool"), ".bulkhead"),
    ("7", "orgs/selectors.py", "import rest_framework", "orgs.selectors -> rest_framework"),
    ("7", "billing/redeem.py", "import drf_spectacular", "billing.redeem -> drf_spectacular"),
    ("8", "orgs/signin/provider.py", "import requests", "orgs.signin.provider -> requests"),
    ("9", "credentials/pages/connections.py", "import orgs.models", "credentials.pages.connections -> orgs.models"),
    ("9", "orgs/signin/views.py", "import audit.models", "orgs.signin.views -> audit.models"),
    ("10", "gateway/stray.py", "import proxy.runtime", "stray"),
    ("11", "audit/stray.py", "", "stray"),
    ("12", "orgs/roles.py", "import orgs.selectors", "orgs.roles -> orgs.selectors"),
    ("13", "billing/states.py", "import billing.services", "billing.states -> billing.services"),
    ("14", "credentials/sealing.py", "import credentials.services.keys", "sealing -> credentials.services.keys"),
    ("15", "oauth_ext/scopes.py", "import oauth_ext.services.consent", "scopes -> oauth_ext.services.consent"),
    ("16", "proxy/calls/admit.py", "import proxy.control_plane.doctor", "admit -> proxy.control_plane.doctor"),
    ("16", "proxy/views/mcp.py", "import proxy.control_plane.discovery", "mcp -> proxy.control_plane.discovery"),
    ("17", "gateway/catalog/vendor.py", "import gateway.catalog.services", "vendor -> gateway.catalog.services"),
    ("18", "gateway/coordination/rules.py", "import gateway.coordination.epochs", "rules -> gateway"),
    ("19", "gateway/web/operation.py", "import gateway.web.idempotency", "operation -> gateway.web.idempotency"),
    ("21", "billing/checkout.py", "import djstripe.models", "billing.checkout -> djstripe"),
    ("20", "gateway/tasks.py", "import gateway.web.models", "gateway.tasks -> gateway.web.models"),
    (
        "22",
        "gateway/status/stages.py",
        "import gateway.status.models",
        "gateway.status.stages -> gateway.status.models",
    ),
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The linter's report on each broken contract, by number, for a copy with every violation planted."""
    copy = tmp_path_factory.mktemp("planted")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("static", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for _, path, line, _ in PLANTED:
        with (copy / path).open("a") as file:
            file.write(f"\n{line}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    answer = subprocess.run(
        command, cwd=copy, env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 1, answer.stdout + answer.stderr
    details = answer.stdout.partition("Broken contracts")[2]
    parts = re.split(r"^(\d+) [^\n]*\n-+$", details, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def contracts() -> dict[str, dict[str, Any]]:
    """Every contract by its number."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {contract["name"].split()[0]: contract for contract in found}


def test_every_contract_has_a_planted_violation() -> None:
    assert contracts().keys() == {number for number, *_ in PLANTED}


def test_modules_that_call_themselves_pure_are_held_to_it() -> None:
    held = {ROOT.joinpath(*name.split(".")) for name in contracts()["3"]["source_modules"]}
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    marked = {file.with_suffix("") for file in files if file.read_text().startswith('"""Pure:')}
    assert {module for module in marked if held.isdisjoint({module, *module.parents})} == set()
    assert {module for module in held if not module.is_dir()} <= marked


def test_every_package_and_every_module_of_gateway_is_in_the_app_order() -> None:
    named = set(re.findall(r"[\w.]+", " ".join(contracts()["1"]["layers"])))
    files = [*(ROOT / "gateway").glob("*.py"), *(ROOT / "gateway").glob("*/__init__.py")]
    inside = {f"gateway.{file.parent.name if file.stem == '__init__' else file.stem}" for file in files}
    assert named == (inside - {"gateway.gateway"}) | (set(PACKAGES) - {"gateway"})


@pytest.mark.parametrize(("number", "path", "line", "named"), PLANTED)
def test_a_planted_violation_is_caught(reports: dict[str, str], number: str, path: str, line: str, named: str) -> None:
    assert named in reports[number]
