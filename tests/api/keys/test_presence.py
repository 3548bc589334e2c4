"""Web processes and workers say that they run; a database that is away ends neither of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from celery.signals import task_prerun, worker_process_shutdown, worker_shutdown
from django.db import DatabaseError

from gateway.keys import holders
from gateway.keys.models import KeyHolder
from gateway.keys.presence import Presence
from gateway.keys.worker_presence import WorkerPresence
from proxy.hot_path_database import DatabaseUnavailable
from proxy.key_presence import stay_present


async def test_a_web_process_is_present_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holders, "EVERY_S", 0.001)
    asked: list[str] = []
    noted_often = asyncio.Event()

    async def run(work: Callable[[], None]) -> None:
        asked.append(work.__name__)
        if len(asked) == 3:
            noted_often.set()
        if len(asked) < 3 or work.__name__ == "leave":
            raise DatabaseUnavailable("away")

    present = asyncio.ensure_future(stay_present(run))
    await noted_often.wait()
    present.cancel()
    with pytest.raises(asyncio.CancelledError):
        await present
    assert asked[:3] == ["note"] * 3
    assert asked[-1] == "leave"
    assert asked.count("leave") == 1


@pytest.mark.parametrize("end", [worker_process_shutdown, worker_shutdown], ids=["process", "threads"])
def test_a_worker_says_so_before_its_tasks_and_leaves(db: None, end: Any) -> None:
    worker = WorkerPresence("worker")
    worker.connect()
    try:
        for _ in range(2):
            task_prerun.send(sender=None)
        [row] = KeyHolder.objects.all()
        assert row.name.startswith("worker ")
        end.send(sender=None)
        assert not KeyHolder.objects.exists()
    finally:
        worker.disconnect()
    task_prerun.send(sender=None)
    assert not KeyHolder.objects.exists()


def test_a_task_runs_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(presence: Presence) -> None:
        raise DatabaseError

    monkeypatch.setattr(Presence, "note", fail)
    monkeypatch.setattr(Presence, "leave", fail)
    worker = WorkerPresence("shipping")
    worker.note()
    worker.leave()
