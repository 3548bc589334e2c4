"""States in words: those that count as trouble and those that do not, and when there is news."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from proxy.control_plane.health import summary
from proxy.control_plane.health.states import LABELS, HealthStatus

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HEALTHY, REACHABLE, DEGRADED, DOWN, UNKNOWN = HealthStatus


@dataclass
class Entry:
    status: HealthStatus
    vendor_slug: str = "acme"
    last_checked: datetime | None = None
    monitored: bool = True


def hosted() -> Entry:
    return Entry(UNKNOWN, monitored=False)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (
            [Entry(HEALTHY), Entry(DOWN), Entry(REACHABLE), Entry(DOWN), Entry(DEGRADED)],
            "2 not responding, 1 degraded, 2 healthy",
        ),
        ([Entry(HEALTHY)], "1 healthy"),
        ([Entry(UNKNOWN), Entry(HEALTHY), hosted()], "1 healthy, 1 being checked, 1 not monitored"),
        ([hosted()], "1 not monitored"),
        ([], ""),
    ],
)
def test_what_is_never_probed_is_no_trouble(entries: list[Entry], words: str) -> None:
    assert summary.summarize(entries) == words


@pytest.mark.parametrize(
    ("entries", "collecting"),
    [
        ([Entry(UNKNOWN), Entry(UNKNOWN), hosted()], True),
        ([Entry(UNKNOWN), Entry(DOWN)], False),
        ([hosted()], False),
        ([], False),
    ],
)
def test_results_are_being_collected_while_nothing_is_known(entries: list[Entry], collecting: bool) -> None:
    assert summary.is_collecting(entries) is collecting


def test_trouble_is_what_does_not_answer_well() -> None:
    assert summary.has_trouble([Entry(HEALTHY), Entry(DEGRADED)])
    assert summary.has_trouble([Entry(DOWN)])
    assert not summary.has_trouble([Entry(HEALTHY), Entry(REACHABLE), Entry(UNKNOWN), hosted()])


def test_the_page_is_as_old_as_its_oldest_state() -> None:
    older = AT - timedelta(seconds=40)
    assert summary.oldest_check([Entry(DOWN, last_checked=AT), Entry(DOWN, last_checked=older), hosted()]) == older
    assert summary.oldest_check([hosted()]) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s ago"), (24.9, "24 s ago"), (119, "119 s ago"), (120, "2 min ago"), (400, "6 min ago")],
)
def test_ages(seconds: float, words: str) -> None:
    assert summary.format_age(timedelta(seconds=seconds)) == words


def test_another_label_is_news_and_another_check_is_not() -> None:
    before = summary.fingerprint([Entry(HEALTHY, "a"), Entry(DOWN, "b")])
    assert summary.fingerprint([Entry(DOWN, "b", AT), Entry(HEALTHY, "a", AT)]) == before
    assert summary.fingerprint([Entry(HEALTHY, "a"), Entry(DEGRADED, "b")]) != before
    assert summary.fingerprint([Entry(HEALTHY, "a")]) != before


def test_every_label_is_explained() -> None:
    assert set(summary.EXPLAINED) == set(LABELS)
