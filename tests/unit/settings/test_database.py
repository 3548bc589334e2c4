"""What DATABASE_URL becomes: a file that keeps what it acknowledged, a pool that comes back soon after an outage."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.settings import base


def database(monkeypatch: pytest.MonkeyPatch, url: str) -> dict[str, Any]:
    """The entry of DATABASES for an address."""
    monkeypatch.setenv("DATABASE_URL", url)
    return base._database()


def test_the_pool_looks_for_a_lost_server_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = database(monkeypatch, "postgres://someone@db.example:5432/gateway")["OPTIONS"]["pool"]
    # An attempt doubles its pauses until it is given up; after 38 s without a server the next look was 25 s away.
    assert 0 < pool["reconnect_timeout"] <= 2
    assert 0 < pool["timeout"] <= 5, "a request waits no longer for a connection"


def test_a_file_keeps_what_it_has_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    options = database(monkeypatch, "sqlite:////tmp/gateway.sqlite3")["OPTIONS"]
    assert "journal_mode=WAL" in options["init_command"]
    assert "synchronous=FULL" in options["init_command"]
    assert options["transaction_mode"] == "IMMEDIATE"


@pytest.mark.parametrize("url", ["mysql://root@db.example/gateway", "not an address"])
def test_another_database_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    with pytest.raises(SystemExit):
        database(monkeypatch, url)
    assert capsys.readouterr().err.startswith("Cannot start: DATABASE_URL ")
