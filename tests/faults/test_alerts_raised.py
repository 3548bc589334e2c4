"""The report about alerts on a live installation in its short form: three parts, real servers, a real Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import alerts_raised
from tests.faults.alerts_raised import FAULTS, Outcome, measured, missing_programs

MISSING = missing_programs()
SHORT = ("metrics killed", "redis killed", "partition dropped")


@pytest.mark.one_back_end
@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
def test_three_parts_break_and_their_alerts_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)  # the run has its own
    # How fast it is says more of the machine than of us, on one that runs a suite.
    for bound in ("TRUE_WITHIN_S", "QUIET_WITHIN_S"):
        monkeypatch.setattr(alerts_raised, bound, 240.0)
    tmp_path.chmod(0o755)
    chosen = [fault for fault in FAULTS if fault.name in SHORT]
    assert len(chosen) == len(SHORT)
    outcomes = measured(tmp_path, chosen, scrape_s=1, tell=str)
    assert all(outcome.holds for outcome in outcomes), "\n".join(map(str, outcomes))


def test_every_alert_is_raised_by_a_part_that_breaks() -> None:
    known = set(alerts_raised.named_alerts())
    assert {alert for fault in FAULTS for alert in fault.raises} == known
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize(
    ("true_after", "false_after", "holds"),
    [
        ({"A": 3.0}, {"A": 4.0}, True),
        ({"A": None}, {"A": 4.0}, False),
        ({"A": 3.0}, {"A": None}, False),
        ({"A": 3.0, "B": None}, {"A": 4.0, "B": 0.0}, False),
        ({}, {}, False),
    ],
)
def test_an_alert_that_never_came_or_never_ended_breaks_the_run(
    true_after: dict[str, float | None], false_after: dict[str, float | None], holds: bool
) -> None:
    outcome = Outcome("a part killed", true_after, false_after)
    assert outcome.holds is holds
    assert ("never" in str(outcome)) is (None in [*true_after.values(), *false_after.values()])
