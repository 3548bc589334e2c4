"""How many tenants the demo vendor keeps, and what it does with a file it cannot read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from demo import vendor_tenants
from demo.listening import StartError
from demo.vendor_tenants import TenantStore


def store(directory: Path) -> TenantStore:
    return TenantStore(directory, lambda: datetime(2027, 1, 15, tzinfo=UTC))


def files(directory: Path) -> set[str]:
    return {path.stem for path in (directory / "tenants").iterdir()}


async def test_least_recently_used_tenant_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_tenants, "MAX_TENANTS", 2)
    tenants = store(tmp_path)
    for name in ("a", "b"):
        await tenants.save(tenants.tenant(name))
    kept, gone = tenants.tenant("a"), tenants.tenant("b")
    tenants.tenant("a")
    await tenants.save(tenants.tenant("c"))
    assert files(tmp_path) == {"a", "c"}
    # A call that was under way for the tenant that went does not bring its file back.
    await tenants.save(gone)
    assert files(tmp_path) == {"a", "c"}
    assert tenants.tenant("a") is kept


async def test_restarts_do_not_get_around_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_tenants, "MAX_TENANTS", 2)
    for name in ("a", "b", "c", "d"):
        tenants = store(tmp_path)
        await tenants.save(tenants.tenant(name))
    assert files(tmp_path) == {"c", "d"}


async def test_unreadable_file_starts_the_tenant_afresh(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tenants = store(tmp_path)
    (tmp_path / "tenants" / "a.json").write_text('{"devices": "secret-content"}')
    assert len(tenants.tenant("a").inventory.devices) == 24
    assert "tenant a starts afresh" in caplog.text
    assert "secret-content" not in caplog.text


def test_fingerprints_differ_between_installations(tmp_path: Path) -> None:
    one, other = store(tmp_path / "one"), store(tmp_path / "other")
    assert one.fingerprint("demo-alice-0001") == store(tmp_path / "one").fingerprint("demo-alice-0001")
    assert one.fingerprint("demo-alice-0001") != other.fingerprint("demo-alice-0001")


def test_folder_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used"):
        store(tmp_path / "file")
