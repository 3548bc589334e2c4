"""The report about a hanging Redis in its short form: a few seconds, few callers, real servers."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.fakes.redis_server import is_installed
from tests.faults import hang_figures
from tests.faults.hang_figures import Figures
from tests.faults.redis_hangs import with_vendor

pytest_plugins = ("tests.e2e.fixtures",)
on_real_servers = pytest.mark.skipif(
    not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="needs redis-server and PostgreSQL",
)


@on_real_servers
async def test_a_hang_of_a_few_seconds(template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    for bound in ("IN_FORCE_S", "IN_FORCE_ONCE_BACK_S", "IN_FORCE_ELSEWHERE_S"):
        monkeypatch.setattr(hang_figures, bound, 15.0)  # half of what a revocation without a bump takes
    figures = Figures(bearers=20, calls_per_s=20, hung_s=3.0)
    await with_vendor(template, tmp_path / "var", figures)
    # How late the loop is says more of the machine than of us, on one that runs a suite.
    figures.own_lateness_ms = figures.wait_ms = 0.0
    assert figures.holds, str(figures)


def good() -> Figures:
    figures = Figures(1_000, 200, 60, 5, 120, 20, 51, 1.0, 900, 1_000, Counter({200: 12_000}), 300, 50, [50, 49])
    figures.in_force_s = {"a revocation": 4.4}
    figures.in_force_once_back_s = {"a revocation": 0.6}
    figures.in_force_elsewhere_s = {"a revocation": 1.2}
    return figures


def test_a_run_is_good_when_every_bound_holds() -> None:
    assert good().holds
    assert "BROKEN" not in str(good())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("statuses", Counter()),
        ("statuses", Counter({200: 11_999, 503: 1})),
        ("statuses", Counter({200: 11_999, 429: 1})),
        ("own_lateness_ms", 101.0),
        ("wait_ms", 101.0),
        ("local_share", 0.5),
        ("worst_statements_per_s", 2_001.0),
        ("admitted_per_process", [51, 50]),
        ("admitted_per_process", []),
        ("in_force_s", {"a revocation": 5.1}),
        ("in_force_s", {"a revocation": None}),
        ("in_force_once_back_s", {"a revocation": 1.1}),
        ("in_force_elsewhere_s", {"a revocation": 2.1}),
        ("pending_bumps", 1),
    ],
)
def test_each_broken_bound_breaks_the_run(name: str, value: object) -> None:
    figures = good()
    setattr(figures, name, value)
    assert not figures.holds
    assert str(figures).count("BROKEN") == 1
