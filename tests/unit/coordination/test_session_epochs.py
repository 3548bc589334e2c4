"""Epochs of sessions are kept as long as their sessions, and leave the file of a host once they mean nothing."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from gateway.coordination import redis_store, sqlite_store
from gateway.coordination.hash_tags import session_epoch, tagged
from gateway.coordination.rules import Rule
from proxy.sessions import client_session


async def test_the_file_forgets_sessions_that_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "_SWEEP_EVERY", 1)
    now_s = 1_800_000_000
    made = sqlite_store.SQLiteStore(tmp_path / "x.sqlite3", lambda: uuid.uuid4().hex, lambda: now_s * 1000)
    over, open_ = (tagged("svc", session_epoch("ab", now_s + more_s)) for more_s in (-1, 60))
    others = ["catalog", tagged("svc", "subject:svc"), "session:0000000000:x"]
    await made.begin_epochs([over, open_, *others])
    await made.admit(Rule("one", limit=5, window_s=60), "svc", ())
    found = await made.read_epochs([over, open_, *others])
    assert found is not None
    assert [bool(each) for each in found] == [False, True, True, True, True]
    await made.aclose()


def test_an_epoch_outlives_its_session() -> None:
    """Redis forgets an epoch by itself: an ended session would be open again."""
    assert redis_store.EPOCH_TTL_S >= client_session.LIFETIME_S
