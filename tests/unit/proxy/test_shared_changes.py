"""Changes that are told to other processes, when more come at a bad moment. docs/decisions/0113"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.coordination.sqlite_exchange import SQLiteExchange
from gateway.coordination.store import CoordinationUnavailable
from proxy.sessions import shared_changes
from proxy.sessions.client_session import ClientSession
from proxy.sessions.shared_changes import LOG, SharedChanges
from proxy.sessions.stream_places import StreamPlaces

ORG, SESSION = uuid.uuid4(), ClientSession(b"s" * 16, {}, "epoch", 9e9)


class SlowExchange(SQLiteExchange):
    """Its answer to `append` comes when `may_answer` is set; with `is_full` nothing is written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_answer, self.is_full = asyncio.Event(), False

    async def append(self, log: str, entry: bytes, ttl_s: int) -> None:
        if self.is_full:
            raise CoordinationUnavailable("full")
        await super().append(log, entry, ttl_s)
        await self.may_answer.wait()


class ToldStreams(StreamPlaces):
    def __init__(self) -> None:
        super().__init__(of_all=1, of_organization=1, of_subject=1)
        self.told = 0

    def announce(self, org_id: uuid.UUID, announced: tuple[bytes, str] | None = None) -> None:
        self.told += 1


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["list", "session"])
async def test_a_change_while_the_former_is_being_written_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(shared_changes, "GATHER_S", 0.01)
    exchange = SlowExchange(tmp_path / "x.sqlite3")
    made = SharedChanges(exchange, b"secret", ToldStreams(), lambda org_id, place, name: None)

    def change() -> None:
        if kind == "list":
            made.list_changed(ORG, b"place", "tools")
        else:
            made.session_changed(SESSION)

    change()
    await asyncio.sleep(0.2)
    change()
    exchange.may_answer.set()
    await asyncio.sleep(0.2)
    assert len((await exchange.read_after(LOG, "0", 0.01))[1]) == 2
    await made.aclose()


async def test_streams_hear_of_each_change_while_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading may work meanwhile, so nothing else tells them."""
    monkeypatch.setattr(shared_changes, "GATHER_S", 0.01)
    monkeypatch.setattr(shared_changes, "_PAUSE_S", 0.05)
    exchange, streams = SlowExchange(tmp_path / "x.sqlite3"), ToldStreams()
    exchange.is_full = True
    made = SharedChanges(exchange, b"secret", streams, lambda org_id, place, name: None)
    for count in (1, 2, 3):
        made.list_changed(ORG, b"place", "tools")
        await asyncio.sleep(0.3)
        assert streams.told == count, "each once"
    exchange.is_full = False
    exchange.may_answer.set()
    await until(lambda: not made._lists)
    assert streams.told == 3
    await made.aclose()
