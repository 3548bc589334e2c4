"""A rotation of the master key that is killed under load, in short: real servers, few organizations."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.fakes.redis_server import is_installed
from tests.faults.rotated_keys import Figures, Plan, staged

pytest_plugins = ("tests.e2e.fixtures",)


@pytest.mark.skipif(
    not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="needs redis-server and PostgreSQL",
)
async def test_a_rotation_that_is_killed(template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    plan = Plan(organizations=24, rate=10, kills=1, batches=2)
    figures = await staged(template, tmp_path / "var", plan)
    assert figures.holds, str(figures)


def good() -> Figures:
    return Figures(
        Counter({"200": 100}), replaced=4, stored=4, midway=[(10, 20)], moved=34, sent_twice=0, left_behind=0
    )


def test_a_run_is_good_when_every_call_succeeded_and_every_row_moved() -> None:
    assert good().holds
    assert "GOOD" in str(good())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outcomes", Counter()),
        ("outcomes", Counter({"200": 99, "503": 1})),
        ("sent_twice", 1),
        ("replaced", 3),
        ("stored", 3),
        ("too_early", 1),
        ("midway", []),
        ("midway", [(0, 34)]),
        ("midway", [(34, 0)]),
        ("left_behind", 1),
        ("moved", 0),
    ],
)
def test_a_run_is_bad_when_one_failed(name: str, value: object) -> None:
    figures = good()
    setattr(figures, name, value)
    assert not figures.holds
    assert "BROKEN" in str(figures)
