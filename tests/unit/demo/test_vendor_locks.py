"""The locks of the third-party servers: everything pinned and proved, and no address of a registry."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.vendors.servers import HERE

PIN = re.compile(r"[a-z0-9][a-z0-9._-]*==[0-9][^\s;/@]*( ; [^/]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


@pytest.fixture
def package_lock() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((HERE / "package-lock.json").read_text())
    return content


@pytest.mark.parametrize("name", ["requirements", "collector"])
def test_a_python_lock_holds_pins_and_hashes_only(name: str) -> None:
    lines = (HERE / f"{name}.lock").read_text().splitlines()
    assert [line for line in lines if not PIN.fullmatch(line) and not HASH.fullmatch(line)] == []
    pinned = {line.partition("==")[0] for line in lines if PIN.fullmatch(line)}
    wanted = (HERE / f"{name}.in").read_text().splitlines()
    assert {line for line in wanted if line and not line.startswith("#")} <= pinned


def test_node_lock_proves_every_package_without_an_address(package_lock: dict[str, Any]) -> None:
    packages = {path: entry for path, entry in package_lock["packages"].items() if path}
    assert len(packages) > 50
    assert [path for path, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")] == []
    assert [path for path, entry in packages.items() if "resolved" in entry] == []


def test_node_lock_belongs_to_an_exact_wish(package_lock: dict[str, Any]) -> None:
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    assert package_lock["packages"][""]["dependencies"] == wanted
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
