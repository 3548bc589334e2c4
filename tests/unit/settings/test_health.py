"""HEALTH_PROBE_INTERVAL: any whole number of seconds from one on, up to an hour. Spec: §8"""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from gateway.settings import health


def interval(monkeypatch: pytest.MonkeyPatch, value: str) -> Any:
    monkeypatch.setenv("HEALTH_PROBE_INTERVAL", value)
    assert health.__file__
    return runpy.run_path(health.__file__)["HEALTH_PROBE_INTERVAL_S"]


@pytest.mark.parametrize(("value", "seconds"), [("1", 1), ("4", 4), ("3600", 3600), ("", 60)])
def test_intervals_that_are_taken(monkeypatch: pytest.MonkeyPatch, value: str, seconds: int) -> None:
    assert interval(monkeypatch, value) == seconds


@pytest.mark.parametrize("value", ["0", "-1", "3601", "soon"])
def test_intervals_that_stop_the_start(
    monkeypatch: pytest.MonkeyPatch, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        interval(monkeypatch, value)
    assert refused.value.code == 78
    assert "HEALTH_PROBE_INTERVAL" in capsys.readouterr().err
