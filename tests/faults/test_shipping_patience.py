"""Runs that end claims early must leave slow deliveries the time to end."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults import shipping_killed
from tests.faults.shipping_killed import RECEIVER, Run

pytestmark = pytest.mark.one_back_end


class SlowDelivery:
    """A stage with one receiver. Its batch takes `batch_s` and is lost when its claim ends before that."""

    def __init__(self, batch_s: float) -> None:
        self.now_s, self._batch_s = 0.0, batch_s
        part = SimpleNamespace(kill=lambda: None, start=lambda: None)
        self.worker, self.beat, self.receivers = part, part, [part]
        self.done = False
        self._requests, self._began_s = 1, 0.0

    def revive(self) -> None:
        self.done = self.done or self.now_s - self._began_s >= self._batch_s

    def begun(self, place: int) -> int:
        return self._requests

    def end_claim(self, place: int) -> int:
        self._began_s = self.now_s
        self._requests += 1
        return 1

    def waiting(self) -> int:
        return 0 if self.done else 500


def run_of(stage: SlowDelivery, monkeypatch: pytest.MonkeyPatch) -> Run:
    clock = SimpleNamespace(monotonic=lambda: stage.now_s, sleep=lambda seconds: None)
    monkeypatch.setattr(shipping_killed, "time", clock)
    run: Any = Run(stage, {}, random.Random(1), claim_s=0.5)  # type: ignore[arg-type]
    return run


def looks(run: Any, stage: SlowDelivery, for_s: float) -> bool:
    until_s = stage.now_s + for_s
    while stage.now_s < until_s and not run._is_done():
        stage.now_s += 0.1
    return stage.done


def test_a_slow_delivery_ends_although_its_first_claims_are_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = SlowDelivery(batch_s=3.0)
    run = run_of(stage, monkeypatch)
    assert looks(run, stage, for_s=20.0)
    assert run.figures.claims_ended == 3, "after half a second, one and two; the fourth claim had four"


def test_claims_end_early_again_after_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = SlowDelivery(batch_s=1_000.0)
    run: Any = run_of(stage, monkeypatch)
    looks(run, stage, for_s=10.0)
    ended = run.figures.claims_ended
    monkeypatch.setattr(run, "_wait_for_a_request", lambda place: None)
    run._kill(RECEIVER)
    looks(run, stage, for_s=1.0)
    assert (ended, run.figures.claims_ended) == (4, 5)
