"""The cost of the figures: the steps do what a call and a second do, and a share beyond the bound fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import metrics_cost
from bench.metrics_cost import Cost
from gateway.lib.metrics import call_tally, names
from gateway.lib.metrics.figures import reset_all


def test_both_steps_do_what_the_gateway_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, least in (("RUNS", 1), ("TIMES", 3), ("WRITES", 2)):
        monkeypatch.setattr(metrics_cost, name, least)
    call_tally.forget()  # calls that other tests of this process have made
    reset_all()
    seen: list[float] = []
    monkeypatch.setattr(metrics_cost, "_series", lambda: seen.append(sum(names.CALLS.values.values())) or 4)
    found = metrics_cost.measure(650.0, tmp_path)
    assert (found.call_us, found.series) == (650.0, 4)
    of_a_write = metrics_cost.VENDORS * len(metrics_cost.ROUTES) * len(metrics_cost.OUTCOMES)
    assert seen == [3 + 2 * of_a_write], "each counted call and each series of each write"
    assert list(tmp_path.glob("web-0.figures"))
    assert not names.CALLS.values, "nothing stays in the figures of this process"
    assert not call_tally.calls


def test_shares_are_of_a_call_and_of_a_second() -> None:
    found = Cost(call_us=500.0, count_us=5.0, file_us=2_000.0, series=409)
    assert found.share == pytest.approx(0.012)
    assert found.lines()[-1] == "together: 1.20%, at most 2%"


@pytest.mark.parametrize(("count_us", "status"), [(5.0, 0), (50.0, 1)])
def test_a_share_beyond_the_bound_is_a_failure(
    count_us: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metrics_cost, "measure", lambda call_us, folder: Cost(call_us, count_us, 1.0, 1))
    assert metrics_cost.main(["--call", "500"]) == status
    assert "together" in capsys.readouterr().out
