"""When an ended program is started again."""

from __future__ import annotations

from gateway.supervisor.restarts import Restarts


def test_five_restarts_ever_later_then_none() -> None:
    restarts = Restarts()
    delays = [restarts.next_delay_s("worker", ran_s=1) for _ in range(6)]
    assert delays == [1, 2, 4, 8, 16, None]


def test_programs_are_counted_apart() -> None:
    restarts = Restarts()
    for _ in range(6):
        restarts.next_delay_s("worker", ran_s=1)
    assert restarts.next_delay_s("vendor", ran_s=1) == 1


def test_a_long_run_starts_the_count_anew() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.next_delay_s("worker", ran_s=1)
    assert restarts.next_delay_s("worker", ran_s=3600) == 1
    assert restarts.next_delay_s("worker", ran_s=1) == 2
