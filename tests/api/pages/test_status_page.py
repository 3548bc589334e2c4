"""The public status page: counts, and nothing about who uses what."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client as Browser

from gateway.coordination.rules import Rule
from gateway.coordination.sqlite_store import SQLiteStore
from proxy.control_plane.health.states import HealthStatus
from tests.api.pages.conftest import text
from tests.factories.cast import Cast
from tests.factories.fixed_window import hold_window
from tests.factories.health import connected_vendor, put_health


def test_vendors_are_counted_and_not_named(cast: Cast, shared: SQLiteStore) -> None:
    for slug in ("alpha", "beta", "hosted"):
        connected_vendor(cast.org, slug, hosted=slug == "hosted")
    connected_vendor(cast.other_org, "alpha")
    put_health(shared, "alpha", HealthStatus.DOWN, error_detail="gone", age_s=24)
    put_health(shared, "beta", HealthStatus.REACHABLE)
    page = text(Browser().get("/status"))
    assert "Vendors: 1 not responding, 1 healthy; checked 2" in page
    assert "not monitored" not in page
    assert not any(name in page for name in ("Alpha", "Beta", "Hosted", "Acme", "gone"))


def test_a_service_without_trouble_says_so(cast: Cast, shared: SQLiteStore) -> None:
    assert "No vendors monitored yet" in text(Browser().get("/status"))
    connected_vendor(cast.org, "alpha")
    assert "Collecting first results." in text(Browser().get("/status"))
    put_health(shared, "alpha", HealthStatus.HEALTHY)
    page = text(cast.client("member").get("/status"))
    assert "Vendors: 1 healthy" in page
    assert "alert-success" in page


@pytest.mark.usefixtures("shared")
def test_strangers_are_counted_and_writes_refused(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_window(monkeypatch)
    settings.BACKSTOP = Rule("backstop-of-this-test", limit=2, window_s=60)
    assert [Browser().get("/status").status_code for _ in range(3)] == [200, 200, 429]
    assert Browser().post("/status", REMOTE_ADDR="198.51.100.7").status_code == 405
