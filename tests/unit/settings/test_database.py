"""DATABASE_URL as settings: a file that keeps acknowledged rows, or a pool whose every wait has an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.lib.session_timeouts import SessionTimeouts, with_timeouts
from gateway.settings import database

SERVER = "postgres://someone@db.example:5432/gateway"


def entry_of(monkeypatch: pytest.MonkeyPatch, url: str, **variables: str) -> dict[str, Any]:
    """The entry of DATABASES for an address."""
    for name, value in {"DATABASE_URL": url, **variables}.items():
        monkeypatch.setenv(name, value)
    return database.database_entry(Path("/tmp"))


def test_the_pool_looks_for_a_lost_server_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = entry_of(monkeypatch, SERVER)["OPTIONS"]["pool"]
    # An attempt doubles its pauses until it is given up; after 38 s without a server the next look was 25 s away.
    assert 0 < pool["reconnect_timeout"] <= 2
    assert 0 < pool["timeout"] <= 5, "a request waits no longer for a connection"


def test_every_wait_for_a_server_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    options = entry_of(monkeypatch, SERVER)["OPTIONS"]
    assert 2 <= options["connect_timeout"] <= 5
    silent_s = options["keepalives_idle"] + options["keepalives_interval"] * options["keepalives_count"]
    assert silent_s <= 10
    assert 0 < options["tcp_user_timeout"] <= 10_000
    for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        assert f"-c {name}=" in options["options"]
    assert options["pool"]["connection_class"].response_timeout_s == database.SESSION_TIMEOUTS.response_timeout_s


def test_the_query_of_the_address_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "options=-c%20statement_timeout%3D90s&connect_timeout=9&tcp_user_timeout=20000&sslmode=verify-full"
    entry = entry_of(monkeypatch, f"{SERVER}?{query}")
    options = entry["OPTIONS"]
    assert (options["connect_timeout"], options["tcp_user_timeout"], options["sslmode"]) == (9, 20000, "verify-full")
    assert options["keepalives_idle"] == database.TCP_OPTIONS["keepalives_idle"], "what it does not say is ours"
    assert options["options"].startswith("-c statement_timeout=300000 -c lock_timeout=60000")
    assert options["options"].endswith(" -c statement_timeout=90s"), "the server takes the last value"
    again = with_timeouts(entry, SessionTimeouts(statement_s=4, lock_s=3, idle_in_transaction_s=2))["OPTIONS"]
    assert again["options"] == (
        "-c statement_timeout=4000 -c lock_timeout=3000 -c idle_in_transaction_session_timeout=2000"
        " -c jit=off -c statement_timeout=90s"
    )


def test_a_pooler_in_transaction_mode_gets_no_options_that_it_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = entry_of(monkeypatch, SERVER)
    assert "DISABLE_SERVER_SIDE_CURSORS" not in direct
    pooled = entry_of(monkeypatch, SERVER, DATABASE_POOLER="transaction")
    assert "options" not in pooled["OPTIONS"]
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert pooled["OPTIONS"]["pool"]["connection_class"].response_timeout_s > 0, "our own patience ends all the same"
    assert "options" not in with_timeouts(pooled, database.HOT_PATH_TIMEOUTS)["OPTIONS"]


def test_an_unknown_pooler_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        entry_of(monkeypatch, SERVER, DATABASE_POOLER="statement")
    assert capsys.readouterr().err.startswith("Cannot start: DATABASE_POOLER ")


def test_a_file_keeps_what_it_has_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    options = entry_of(monkeypatch, "sqlite:////tmp/gateway.sqlite3")["OPTIONS"]
    assert "journal_mode=WAL" in options["init_command"]
    assert "synchronous=FULL" in options["init_command"]
    assert options["transaction_mode"] == "IMMEDIATE"


@pytest.mark.parametrize("url", ["mysql://root@db.example/gateway", "not an address"])
def test_another_database_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    with pytest.raises(SystemExit):
        entry_of(monkeypatch, url)
    assert capsys.readouterr().err.startswith("Cannot start: DATABASE_URL ")


@pytest.mark.parametrize(("process", "statement_s", "lock_s"), [("web", 15, 5), ("", 300, 60)])
def test_a_page_is_ended_sooner_than_a_command(
    monkeypatch: pytest.MonkeyPatch, process: str, statement_s: int, lock_s: int
) -> None:
    timeouts = database.timeouts_of(process, 15)
    assert (timeouts.statement_s, timeouts.lock_s) == (statement_s, lock_s)
    assert database.timeouts_of("web", 3).lock_s <= 3, "a lock is not waited for longer than a statement may take"
