"""Calls at a rate: they are sent when they are due, and their time counts from then."""

from __future__ import annotations

from bench.connection import Pacer


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Connection:
    """Remembers when each of its calls was due."""

    def __init__(self) -> None:
        self.due_s: list[float] = []

    def send(self, since_s: float) -> None:
        self.due_s.append(since_s)


def test_as_many_calls_are_sent_as_are_due() -> None:
    clock, connections = Clock(), [Connection() for _ in range(8)]
    pacer = Pacer(connections, 4.0, clock=clock)  # type: ignore[arg-type]
    pacer.tick()
    assert sum(len(one.due_s) for one in connections) == 1
    clock.now_s = 1.0
    pacer.tick()
    pacer.tick()
    assert sorted(due_s for one in connections for due_s in one.due_s) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_call_that_waits_for_a_connection_counts_from_when_it_was_due() -> None:
    clock, connection = Clock(), Connection()
    pacer = Pacer([connection], 2.0, clock=clock)  # type: ignore[list-item]
    pacer.tick()
    clock.now_s = 1.2
    pacer.tick()
    assert connection.due_s == [0.0]
    pacer.release(connection)  # type: ignore[arg-type]
    pacer.release(connection)  # type: ignore[arg-type]
    assert connection.due_s == [0.0, 0.5, 1.0]


def test_a_free_connection_waits_for_the_next_call() -> None:
    clock, connection = Clock(), Connection()
    pacer = Pacer([connection], 2.0, clock=clock)  # type: ignore[list-item]
    pacer.tick()
    pacer.release(connection)  # type: ignore[arg-type]
    assert connection.due_s == [0.0]
    clock.now_s = 0.5
    pacer.tick()
    assert connection.due_s == [0.0, 0.5]
