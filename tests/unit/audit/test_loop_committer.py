"""The loop committer: how callers learn the outcome, and when the thread takes over."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from audit.call_record import UNKNOWN, CallRecord
from audit.loop_committer import LoopCommitter
from audit.outage import Outage
from audit.pending_record import AuditUnavailable, PendingRecord
from audit.statement import RecordRefused
from tests.unit.audit.test_call_record import make_record


class FakeConnection:
    """An audit connection whose answers the test gives: `answer` makes the batch durable, `fault` is raised instead."""

    def __init__(self) -> None:
        self.batches: list[list[CallRecord]] = []
        self.is_closed = False
        self.sends_at_once = True
        self.flushed = 0
        self.refuses_to_start: Exception | None = None
        self._fault: Exception | None = None
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    def fileno(self) -> int:
        return self._ours.fileno()

    def start_commit(self, records: Sequence[CallRecord]) -> bool:
        if self.refuses_to_start is not None:
            raise self.refuses_to_start
        assert len({record.id for record in records}) == len(records)
        self.batches.append(list(records))
        return self.sends_at_once

    def flush(self) -> bool:
        self.flushed += 1
        return True

    def poll_commit(self) -> bool:
        is_end = self._ours.recv(1) == b"!"
        if self._fault is not None:
            raise self._fault
        return is_end

    def close(self) -> None:
        self.is_closed = True
        self._ours.close()
        self._theirs.close()

    def answer(self, said: bytes = b"!", *, fault: Exception | None = None) -> None:
        self._fault = fault
        self._theirs.send(said)


class Stage:
    """A loop committer on a fake connection, with the batches that it gave back."""

    def __init__(self, *, max_batch: int = 512, deadline_s: float = 20.0) -> None:
        self.connection = FakeConnection()
        self.loop = asyncio.get_running_loop()
        self.uncommitted: list[tuple[list[PendingRecord], Exception]] = []
        self.outage = Outage()
        self.deadline_s = deadline_s
        self.committer = LoopCommitter(
            *(self.connection, self.loop),
            on_uncommitted=lambda batch, fault: self.uncommitted.append((list(batch), fault)),
            outage=self.outage,
            max_batch=max_batch,
            deadline_s=deadline_s,
        )

    def put(self, record: CallRecord | None = None, *, left_s: float | None = None) -> asyncio.Future[None]:
        expires_at = time.monotonic() + (self.deadline_s if left_s is None else left_s)
        pending = PendingRecord(record or make_record(), self.loop, self.loop.create_future(), expires_at)
        self.committer.put(pending)
        return pending.future

    async def sent(self, batches: int = 1) -> None:
        async with asyncio.timeout(60):
            while len(self.connection.batches) < batches:
                await asyncio.sleep(0)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    yield made
    if made.committer.is_open:
        made.connection.answer()
        await made.committer.aclose()


async def test_nobody_goes_on_before_the_answer(stage: Stage) -> None:
    future = stage.put()
    await stage.sent()
    stage.connection.answer(b".")  # a part of it
    await asyncio.sleep(0.01)
    assert not future.done()
    stage.connection.answer()
    await future
    assert [len(batch) for batch in stage.connection.batches] == [1]


async def test_what_comes_in_one_pass_is_one_batch_and_what_comes_meanwhile_the_next(stage: Stage) -> None:
    first = [stage.put() for _ in range(3)]
    await stage.sent()
    later = [stage.put() for _ in range(5)]
    assert stage.committer.pending_count == 5
    stage.connection.answer()
    await asyncio.gather(*first)
    await stage.sent(2)
    assert not any(future.done() for future in later)
    stage.connection.answer()
    await asyncio.gather(*later)
    assert [len(batch) for batch in stage.connection.batches] == [3, 5]


async def test_after_a_lone_one_nobody_is_waited_for_until_there_is_a_crowd_again(stage: Stage) -> None:
    sizes = []
    for crowd in (1, 1, 3, 3, 1, 1):
        seen = len(stage.connection.batches)
        futures = [stage.put() for _ in range(crowd)]
        sizes.append(len(stage.connection.batches) - seen)  # sent before the loop's next pass
        while not all(future.done() for future in futures):
            await stage.sent(seen + 1)
            seen = len(stage.connection.batches)
            stage.connection.answer()
            await asyncio.wait(futures, timeout=0.05)
    assert sizes == [0, 1, 1, 0, 0, 1]
    assert [len(batch) for batch in stage.connection.batches] == [1, 1, 1, 2, 3, 1, 1]


async def test_a_batch_has_an_end() -> None:
    stage = Stage(max_batch=2)
    futures = [stage.put() for _ in range(3)]
    for number in (1, 2):
        await stage.sent(number)
        stage.connection.answer()
        await asyncio.gather(*futures[: 2 * number])
    assert [len(batch) for batch in stage.connection.batches] == [2, 1]
    await stage.committer.aclose()


async def test_of_an_intent_and_its_outcome_the_outcome_is_sent(stage: Stage) -> None:
    intent = make_record(status=UNKNOWN)
    futures = [stage.put(intent), stage.put(replace(intent, status="success"))]
    await stage.sent()
    stage.connection.answer()
    await asyncio.gather(*futures)
    assert [record.status for record in stage.connection.batches[0]] == ["success"]


async def test_the_record_of_who_left_is_committed_all_the_same(stage: Stage) -> None:
    gone, stays = stage.put(), stage.put()
    gone.cancel()
    await stage.sent()
    stage.connection.answer()
    await stays
    assert len(stage.connection.batches[0]) == 2


async def test_a_broken_connection_gives_everything_back_and_closes_the_committer(stage: Stage) -> None:
    under_way = stage.put()
    await stage.sent()
    behind = stage.put()
    fault = ConnectionError("gone")
    stage.connection.answer(fault=fault)
    async with asyncio.timeout(60):
        while not stage.uncommitted:
            await asyncio.sleep(0)
    [(batch, reported)] = stage.uncommitted
    assert [pending.future for pending in batch] == [under_way, behind]
    assert reported is fault
    assert not under_way.done()
    assert not behind.done()
    assert stage.connection.is_closed
    assert not stage.committer.is_open


async def test_a_connection_that_ends_while_nothing_is_asked_closes_the_committer(stage: Stage) -> None:
    stage.connection.answer(fault=ConnectionError("gone"))
    async with asyncio.timeout(60):
        while stage.committer.is_open:
            await asyncio.sleep(0)
    assert [batch for batch, _ in stage.uncommitted] == [[]]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_record_that_cannot_be_stored_goes_back_and_the_committer_goes_on(stage: Stage, at_once: bool) -> None:
    refused = RecordRefused("DataError")
    if at_once:
        stage.connection.refuses_to_start = refused
        poison = stage.put()
        await asyncio.sleep(0.01)
        stage.connection.refuses_to_start = None
        well = stage.put()
        await stage.sent(1)
    else:
        poison = stage.put()
        await stage.sent()
        well = stage.put()
        stage.connection.answer(fault=refused)
        await stage.sent(2)
    stage.connection.answer()
    await well
    [(batch, reported)] = stage.uncommitted
    assert [pending.future for pending in batch] == [poison]
    assert reported is refused
    assert not poison.done()


async def test_silence_fails_the_batch_and_gives_back_what_is_behind_it() -> None:
    stage = Stage(deadline_s=0.2)
    hangs = stage.put()
    await stage.sent()
    behind = stage.put(left_s=20.0)
    with pytest.raises(AuditUnavailable):
        await hangs
    [(batch, _)] = stage.uncommitted
    assert [pending.future for pending in batch] == [behind]
    assert stage.connection.is_closed


async def test_the_deadline_counts_from_the_record_and_not_from_its_batch(stage: Stage) -> None:
    slow = stage.put()
    await stage.sent()
    behind, patient = stage.put(left_s=0.1), stage.put()
    stage.connection.answer()
    await slow
    await stage.sent(2)  # only now the second batch leaves, with what is left of each deadline
    async with asyncio.timeout(60):
        with pytest.raises(AuditUnavailable, match="in time"):
            await behind
    assert stage.committer.is_open, "somebody else waits for the same answer"
    stage.connection.answer()
    await patient
    assert stage.uncommitted == []


async def test_the_deadline_holds_for_records_that_are_not_under_way(stage: Stage) -> None:
    under_way = stage.put(left_s=0.3)
    await stage.sent()
    behind, patient = stage.put(left_s=0.1), stage.put()
    async with asyncio.timeout(60):
        for expired in (behind, under_way):
            with pytest.raises(AuditUnavailable, match="in time"):
                await expired
        while not stage.uncommitted:
            await asyncio.sleep(0)
    assert [[pending.future for pending in batch] for batch, _ in stage.uncommitted] == [[patient]]
    assert not patient.done()


async def test_a_second_of_silence_is_an_outage_until_the_answer(stage: Stage) -> None:
    future = stage.put()
    async with asyncio.timeout(60):
        while not stage.outage.is_active:
            await asyncio.sleep(0.01)
        assert not future.done(), "its own deadline is later"
        stage.connection.answer()
        await future
    assert not stage.outage.is_active


async def test_a_timer_that_rings_early_hides_no_outage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = stage.loop.call_later

    def early(delay_s: float, *work: Any, **options: Any) -> asyncio.TimerHandle:
        return exact(delay_s - 0.02 if delay_s > 0.5 else delay_s, *work, **options)

    monkeypatch.setattr(stage.loop, "call_later", early)
    future = stage.put()
    async with asyncio.timeout(60):
        while not stage.outage.is_active:
            await asyncio.sleep(0.01)
    assert not future.done()


async def test_a_batch_larger_than_the_socket_takes_is_sent_on(stage: Stage) -> None:
    stage.connection.sends_at_once = False
    future = stage.put()
    await stage.sent()
    async with asyncio.timeout(60):
        while not stage.connection.flushed:
            await asyncio.sleep(0)
    stage.connection.answer()
    await future
    assert stage.connection.flushed == 1


async def test_closing_waits_for_what_is_under_way(stage: Stage) -> None:
    future = stage.put()
    await stage.sent()
    closing = asyncio.ensure_future(stage.committer.aclose())
    await asyncio.sleep(0.01)
    assert not closing.done()
    stage.connection.answer()
    await closing
    assert future.done()
    assert stage.connection.is_closed


async def test_closing_does_not_wait_for_ever() -> None:
    stage = Stage(deadline_s=0.2)
    future = stage.put()
    await stage.committer.aclose()
    with pytest.raises(AuditUnavailable):
        await future
    assert stage.connection.is_closed
