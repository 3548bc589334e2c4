"""The thread that tries again: nothing that is begun while it leaves is left lying."""

from __future__ import annotations

import threading

from gateway.coordination.retried_bumps import RetriedBumps
from gateway.coordination.retry_thread import RetryThread


def test_what_is_begun_when_an_attempt_has_just_ended_well_is_tried() -> None:
    tried = 0
    is_over = threading.Event()

    def attempt() -> bool:
        nonlocal tried
        tried += 1
        if tried == 1:
            retry_thread.start()  # the thread is there, and would end with this attempt
        else:
            is_over.set()
        return True

    retry_thread = RetryThread(attempt, "test-recovery")
    retry_thread.start()
    assert is_over.wait(20)
    retry_thread.stop()
    assert tried == 2
    assert all(thread.name != "test-recovery" for thread in threading.enumerate())


def test_a_thread_that_has_ended_is_followed_by_another() -> None:
    rounds = [threading.Event(), threading.Event()]
    left = list(rounds)

    def attempt() -> bool:
        left.pop(0).set()
        return True

    retry_thread = RetryThread(attempt, "test-recovery")
    for each in rounds:
        retry_thread.start()
        assert each.wait(20)
        for thread in threading.enumerate():
            if thread.name == "test-recovery":
                thread.join(20)
    retry_thread.stop()
    assert left == []


class _Store:
    """Remembers bumps."""

    def __init__(self) -> None:
        self.bumped: list[str] = []
        self.has_two = threading.Event()

    def bump_epochs(self, names: list[str]) -> None:
        self.bumped += names
        if len(self.bumped) == 2:
            self.has_two.set()


def test_a_late_bump_that_comes_when_the_others_have_just_been_sent_is_sent() -> None:
    store = _Store()
    retried = RetriedBumps(lambda: store)  # type: ignore[arg-type,return-value]
    send = retried._retry_thread._attempt

    def attempt() -> bool:
        is_done = send()
        if store.bumped == ["subject:a"]:
            retried.add(["subject:b"])
        return is_done

    retried._retry_thread._attempt = attempt
    retried.add(["subject:a"])
    assert store.has_two.wait(20)
    retried._retry_thread.stop()
    assert store.bumped == ["subject:a", "subject:b"]
