"""Fixtures of every test that speaks to the management API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings

from gateway.coordination import backend, epochs, outbox, polled_epoch
from gateway.coordination.hash_tags import untagged
from gateway.coordination.sqlite_store import SQLiteStore
from tests.factories.api import Api
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors
from tests.factories.live_vendor import vendor_in_thread
from tests.factories.tenant import load_vendor
from tests.fakes.vendor import FakeVendor


@pytest.fixture(autouse=True)
def _commands_wait_for_no_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a transaction that is rolled back nothing is relayed, however long a command waits."""
    monkeypatch.setattr(outbox, "COMMAND_WAITS_S", 0.0)


@pytest.fixture
def api(cast: Cast) -> Api:
    """Two organizations, inside a transaction that is rolled back."""
    return Api(cast)


@pytest.fixture
def committed_api(committed_cast: Cast) -> Api:
    """Two organizations, committed: for threads and for what happens on commit."""
    return Api(committed_cast)


@pytest.fixture
def lapsed(settings: LazySettings) -> None:
    """Operators bill by hand, and nobody has paid."""
    settings.BILLING_MODE = "manual"


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SQLiteStore:
    """A store of the test's own, which the service uses too."""
    store = SQLiteStore(tmp_path / "shared.sqlite3", backend.new_value)
    monkeypatch.setattr(backend, "current", lambda: store)
    return store


@pytest.fixture(autouse=True)
def _polled_by_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call reads the catalog's epoch, so that it sees a load that was committed before it."""
    monkeypatch.setattr(polled_epoch, "EVERY_S", 0.0)
    monkeypatch.setattr(polled_epoch, "USED_FOR_S", 0.0)


@pytest.fixture
def epochs_to_bump(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The epochs, without hash tags, that the test's changes would bump when they commit, in order."""
    names: list[str] = []
    monkeypatch.setattr(epochs, "bump_on_commit", lambda *bumped: names.extend(map(untagged, bumped)))
    return names


@pytest.fixture
def vendors(cast: Cast) -> None:
    """Two vendors in the catalog, where nobody answers."""
    load_vendors("acme", "globex")


@pytest.fixture
def live_vendor(cast: Cast) -> Iterator[FakeVendor]:
    """The vendor `fake`, which accepts the API key `right-key`."""
    with vendor_in_thread() as vendor:
        load_vendor(vendor.url)
        yield vendor
