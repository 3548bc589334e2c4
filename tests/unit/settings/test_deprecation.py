"""VENDOR_MCP_SUNSET: no day by default, and never a day that leaves less than a year."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.settings import deprecation


def test_without_the_variable_there_is_no_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENDOR_MCP_SUNSET", raising=False)
    assert deprecation._sunset("VENDOR_MCP_SUNSET") is None


@pytest.mark.parametrize("day", ["2027-11-01", "2030-02-28"])
def test_a_day_with_a_year_of_notice(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setenv("VENDOR_MCP_SUNSET", day)
    assert deprecation._sunset("VENDOR_MCP_SUNSET") == datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "day", ["2027-10-31", "2026-11-01", "1999-01-01", "tomorrow", "2027-13-01", "2028-01-31T00:00"]
)
def test_any_other_day_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], day: str
) -> None:
    monkeypatch.setenv("VENDOR_MCP_SUNSET", day)
    with pytest.raises(SystemExit):
        deprecation._sunset("VENDOR_MCP_SUNSET")
    assert capsys.readouterr().err.startswith("Cannot start: VENDOR_MCP_SUNSET must ")
