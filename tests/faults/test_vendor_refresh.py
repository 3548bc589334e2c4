"""A token is renewed once by two processes, and a kill in mid-renewal is survived. The short form of
`tests.faults.vendor_refresh`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.fakes.redis_server import is_installed
from tests.faults.vendor_refresh import CALLS, OK, Figures, play, staged

pytest_plugins = ("tests.e2e.fixtures",)


@pytest.mark.skipif(
    not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="needs redis-server and PostgreSQL",
)
async def test_two_processes_renew_once_and_survive_a_kill(
    template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    with staged(template, tmp_path / "var") as on:
        figures = await play(on, rounds=2, kill_every=2, seconds=120.0)
    assert figures.holds, str(figures)
    assert (figures.kills, figures.said_in_words, figures.healed) == (1, 1, 1)


def good() -> Figures:
    return Figures(3, Counter({OK: 2 * CALLS}), renewals=2, kills=1, survived=1)


def test_a_run_is_good_when_every_call_was_answered() -> None:
    assert good().holds
    assert "GOOD" in str(good())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outcomes", Counter({OK: 2 * CALLS - 1, "502": 1})),
        ("renewals", 3),
        ("renewals", 1),
        ("survived", 0),
        ("faults", ["a used refresh token was sent"]),
        ("rounds", 0),
    ],
)
def test_and_not_otherwise(name: str, value: object) -> None:
    figures = good()
    setattr(figures, name, value)
    assert not figures.holds
    assert "BROKEN" in str(figures)
