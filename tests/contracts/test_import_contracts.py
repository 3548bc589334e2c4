"""Each import contract of pyproject.toml catches a violation that is planted for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gateway", "audit", "orgs", "billing", "oauth_ext", "credentials", "proxy")
# One line of code per contract, by its number.
PLANTED = {
    "1": ("orgs/roles.py", "import proxy.outcomes"),
    "2": ("credentials/resolve.py", "import oauth_ext.tasks"),
    "3": ("proxy/protocol/sse.py", "import aiohttp"),
    "4": ("proxy/vendors/pool.py", "import orgs.models"),
    "5": ("credentials/selectors.py", "import oauth2_provider.models"),
    "6": ("proxy/vendors/session.py", "import proxy.calls.admit"),
    "7": ("orgs/selectors.py", "import rest_framework"),
    "8": ("orgs/signin/provider.py", "import requests"),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Contract number to KEPT or BROKEN, for a copy of the sources with every violation planted."""
    copy = tmp_path_factory.mktemp("planted")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("static", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path, line in PLANTED.values():
        file = copy / path
        file.write_text(file.read_text() + f"\n{line}\n")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    answer = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    return dict(re.findall(r"^(\d+) .*(KEPT|BROKEN)", answer.stdout, flags=re.M))


def contracts() -> dict[str, dict[str, Any]]:
    """Every contract by its number."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {contract["name"].split()[0]: contract for contract in found}


def test_every_contract_has_a_planted_violation() -> None:
    assert contracts().keys() == PLANTED.keys()


def test_modules_that_call_themselves_pure_are_held_to_it() -> None:
    held = {ROOT.joinpath(*name.split(".")) for name in contracts()["3"]["source_modules"]}
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    marked = {file.with_suffix("") for file in files if file.read_text().startswith('"""Pure:')}
    assert {module for module in marked if held.isdisjoint({module, *module.parents})} == set()
    assert {module for module in held if not module.is_dir()} <= marked


@pytest.mark.parametrize("number", sorted(PLANTED))
def test_a_planted_violation_is_caught(verdicts: dict[str, str], number: str) -> None:
    assert verdicts[number] == "BROKEN"
