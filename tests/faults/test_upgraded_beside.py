"""The last release beside this one, in short: real servers, a few seconds of calls."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.redis_server import is_installed
from tests.faults.upgraded_beside import Figures, has_last_release, staged


@pytest.mark.skipif(
    not is_installed() or not os.environ.get("DATABASE_URL", "").startswith("postgres"),
    reason="needs redis-server and PostgreSQL",
)
@pytest.mark.skipif(not has_last_release(), reason="this copy of the repository lacks the last release")
async def test_calls_and_changes_by_both_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server_url = os.environ["DATABASE_URL"]
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    figures = await staged(tmp_path, server_url, seconds=2, rate=10)
    assert figures.holds, str(figures)


def good() -> Figures:
    calls = [Counter({"200": 10}) for _ in range(4)]
    both = ["the last release", "this release"]
    return Figures(*calls, migrations=5, migrated_s=3.0, changes=["load_catalog"], refused_in_both=both, rows=40)


def test_a_run_is_good_when_every_call_and_change_succeeded() -> None:
    assert good().holds
    assert "GOOD" in str(good())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("before", Counter()),
        ("meanwhile", Counter({"200": 9, "503": 1})),
        ("afterwards", Counter({"200": 9, "500": 1})),
        ("of_this_release", Counter()),
        ("migrations", 0),
        ("changes", []),
        ("refused_in_both", ["this release"]),
        ("rows", 39),
    ],
)
def test_a_run_is_bad_when_one_failed(name: str, value: object) -> None:
    figures = good()
    setattr(figures, name, value)
    assert not figures.holds
    assert "BROKEN" in str(figures)
