"""Sizes of a process: bounds of the settings, what a kept thing costs, and the connections of all processes together.

Spec: docs/many-processes.md
"""

from __future__ import annotations

import runpy
import tracemalloc
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core import checks
from django.db import connection

from credentials.data_key_cache import CacheKey, DataKeyCache
from gateway import postgresql_check
from proxy.vendors.circuits import Circuits
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import Evidence

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="a file has no connections to count")
ROOT = Path(__file__).resolve().parents[3]
SETTINGS = ROOT / "gateway" / "settings" / "processes.py"
DOCUMENT = ROOT / "docs" / "many-processes.md"


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("RESULT_CACHE_MIB", 1, 65_536), ("CACHED_DATA_KEYS", 10, 10_000_000), ("VENDOR_CIRCUITS", 10, 10_000_000)],
)
def test_a_size_has_bounds_and_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, low: int, high: int
) -> None:
    for value in (low, high):
        monkeypatch.setenv(name, str(value))
        runpy.run_path(str(SETTINGS))
    for value in (low - 1, high + 1, "many"):
        monkeypatch.setenv(name, str(value))
        with pytest.raises(SystemExit):
            runpy.run_path(str(SETTINGS))
        assert capsys.readouterr().err.startswith(f"Cannot start: {name} must be ")


COUNT = 2_000


def keep_data_keys() -> object:
    cache = DataKeyCache(max_entries=COUNT)
    for _ in range(COUNT):
        cache.put(CacheKey(uuid.uuid4(), 1, "key-1", uuid.uuid4().bytes * 2), uuid.uuid4().bytes * 2)
    return cache


def keep_circuits() -> object:
    circuits = Circuits(trial_s=5.0, max_circuits=COUNT)
    for _ in range(COUNT):
        key = PoolKey.of(uuid.uuid4(), "acme", uuid.uuid4(), "http://vendor.example/mcp", {})
        circuits.record(Destination(key, lambda: ("", {}), fixed_address=False), Evidence.CONNECT_FAILED)
    return circuits


@pytest.mark.parametrize(
    ("setting", "keep"), [("CACHED_DATA_KEYS", keep_data_keys), ("VENDOR_CIRCUITS", keep_circuits)]
)
async def test_the_document_says_what_one_of_them_costs(setting: str, keep: Callable[[], object]) -> None:
    [row] = [line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{setting}`")]
    documented = float(row.split("|")[3].split()[0]) * 1024
    tracemalloc.start()
    try:
        kept = keep()
        each = tracemalloc.get_traced_memory()[0] / COUNT
    finally:
        tracemalloc.stop()
    assert kept is not None
    assert documented / 2 < each <= documented


# --- connections to PostgreSQL ----------------------------------------------------------------------------------------


def test_connections_of_all_processes_are_added() -> None:
    needed = 40 * 16 + postgresql_check.OTHERS
    assert postgresql_check.too_few(needed, processes=40, each=16) == []
    [warning] = postgresql_check.too_few(needed - 1, processes=40, each=16)
    assert warning.id == "gateway.W002"
    assert f"gives {needed - 1} connections, and 40 web processes may open 16 each, {needed} together" in warning.msg


@pytest.mark.django_db
@on_postgresql
def test_the_check_asks_the_server(settings: LazySettings) -> None:
    settings.DEPLOYMENT_PROCESSES = 1_000
    [warning] = [found for found in checks.run_checks(databases=["default"]) if found.id == "gateway.W002"]
    pool = connection.settings_dict["OPTIONS"]["pool"]["max_size"]
    each = pool + settings.HOT_PATH_CONNECTIONS + postgresql_check.LOOP_CONNECTIONS
    assert f"1000 web processes may open {each} each" in warning.msg
    assert "gateway.W002" not in [found.id for found in checks.run_checks()], "without a database it asks none"
    settings.DEPLOYMENT_PROCESSES = 1
    assert "gateway.W002" not in [found.id for found in checks.run_checks(databases=["default"])]


@pytest.mark.django_db
@on_postgresql
def test_a_pooler_shares_them(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DEPLOYMENT_PROCESSES = 1_000
    monkeypatch.setitem(connection.settings_dict, postgresql_check.HAS_POOLER, True)
    assert "gateway.W002" not in [found.id for found in checks.run_checks(databases=["default"])]
