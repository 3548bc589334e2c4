"""When calls are refused for want of the audit database, and when they go out again."""

from __future__ import annotations

import pytest
import structlog

from audit.outage import GRACE_S, Outage


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outage(clock: Clock) -> Outage:
    return Outage(clock)


def test_the_first_second_is_bridged(outage: Outage, clock: Clock) -> None:
    outage.failed(ConnectionError())
    clock.now_s += GRACE_S - 0.01
    outage.failed(ConnectionError())
    assert not outage.is_active
    clock.now_s += 0.02
    outage.failed(ConnectionError())
    assert outage.is_active
    outage.committed()
    assert not outage.is_active


def test_a_fault_between_commits_is_no_outage(outage: Outage, clock: Clock) -> None:
    for _ in range(5):
        outage.failed(ConnectionError())
        clock.now_s += GRACE_S - 0.1
        outage.committed()
    assert not outage.is_active


def test_a_record_that_waits_is_an_outage_unless_others_were_committed_meanwhile(outage: Outage, clock: Clock) -> None:
    put_s = clock.now_s
    clock.now_s += 0.5
    outage.committed()
    clock.now_s += GRACE_S
    outage.unanswered(put_s)  # it waits behind many, and they are served
    assert not outage.is_active
    outage.unanswered(clock.now_s - GRACE_S + 0.1)
    assert not outage.is_active
    clock.now_s += GRACE_S
    outage.unanswered(clock.now_s - GRACE_S)
    assert outage.is_active


def test_after_a_probe_the_first_fault_is_one_too_many(outage: Outage, clock: Clock) -> None:
    for _ in range(2):
        outage.failed(OSError())
        clock.now_s += GRACE_S
    outage.failed(OSError())
    assert outage.is_active
    outage.probed()
    assert not outage.is_active
    outage.failed(OSError())  # a full disk: what stores nothing works
    assert outage.is_active
    outage.probed()
    outage.committed()
    outage.failed(OSError())
    assert not outage.is_active, "a new one has its own second"


def test_one_line_an_outage(outage: Outage, clock: Clock) -> None:
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            outage.failed(ConnectionError("the text of a driver may quote a row"))
            clock.now_s += 1
            outage.probed()
        outage.committed()
        outage.committed()
    assert [(line["event"], line.get("fault"), line.get("after_s")) for line in logs] == [
        ("audit.unavailable", "ConnectionError", None),
        ("audit.recovered", None, 3.0),
    ]
