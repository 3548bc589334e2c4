"""The hook that says what the garbage collector finds."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.wide.observed_server import answer, install


@pytest.fixture
def former_handler() -> Iterator[None]:
    former = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, former)


def test_cycles_count_as_freed(tmp_path: Path) -> None:
    file = tmp_path / "collector"
    answer(file, 1)
    before = json.loads(file.read_text())
    for _ in range(50):
        cycle: list[object] = []
        cycle.append(cycle)
    del cycle
    answer(file, 2)
    after = json.loads(file.read_text())
    assert (before["number"], after["number"]) == (1, 2)
    assert after["freed"] - before["freed"] >= 50
    assert after["tracked"] > 0


def test_each_signal_is_answered(tmp_path: Path, former_handler: None) -> None:
    file = tmp_path / "collector"
    install(file)
    for number in (1, 2):
        os.kill(os.getpid(), signal.SIGUSR2)
        assert json.loads(file.read_text())["number"] == number
