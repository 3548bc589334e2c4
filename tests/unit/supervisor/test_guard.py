"""The process groups that the guard has to end."""

from __future__ import annotations

from gateway.supervisor.guard import remaining_groups


def test_groups_that_were_taken_back_are_left_alone() -> None:
    assert remaining_groups(["+10\n", "+11\n", "-10\n", "+12\n"]) == [11, 12]


def test_nothing_announced_nothing_ended() -> None:
    assert remaining_groups([]) == []
    assert remaining_groups(["-7\n"]) == []
