"""Web processes are replaced under load, in short: few replacements, short calls, real servers."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.fakes import nginx
from tests.fakes.redis_server import is_installed
from tests.faults.rolled import Figures, Plan, staged

pytest_plugins = ("tests.e2e.fixtures",)


@pytest.mark.skipif(
    not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="needs redis-server and PostgreSQL",
)
async def test_replacements_idle_connections_and_a_stopped_redis(
    template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    plan = Plan(
        replacements=2,
        rate=10,
        longest_s=2.0,
        # Longer than nginx keeps idle connections.
        delay_s=5 if nginx.is_installed() else 1,
        idle_posts=20,
        idle_s=1.0,
        redis_away_s=3.0,
        through_nginx=nginx.is_installed(),
    )
    figures = await staged(template, tmp_path / "var", plan)
    assert figures.holds, str(figures)
    assert figures.without_redis["200"] > 0
    assert figures.idle["200"] == plan.idle_posts


def good() -> Figures:
    return Figures(Counter({"200": 900}), Counter({"200": 100}), Counter({"200": 90}), replaced=10)


def test_a_run_is_good_when_no_call_failed() -> None:
    assert good().holds
    assert "GOOD" in str(good())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outcomes", Counter({"200": 899, "502": 1})),
        ("outcomes", Counter({"200": 899, "ServerDisconnectedError": 1})),
        ("outcomes", Counter()),
        ("idle", Counter({"200": 99, "502": 1})),
        ("without_redis", Counter({"200": 89, "503": 1})),
        ("sent_twice", 1),
        ("replaced", 0),
    ],
)
def test_a_run_is_bad_when_one_failed(name: str, value: object) -> None:
    figures = good()
    setattr(figures, name, value)
    assert not figures.holds
    assert "BROKEN" in str(figures)
