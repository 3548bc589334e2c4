"""When an alert is told: once, at most once an hour for a cause that comes and goes, and not in quiet hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from audit.stream import Log, take
from gateway.lib.errors import Invalid
from orgs.models import Alert, AlertMessage, AlertSettings
from orgs.services.alert_settings import quiet_end
from proxy.control_plane.alerts import listing
from proxy.control_plane.alerts.watch import CURSOR, watch
from proxy.control_plane.health.states import HealthStatus
from tests.api.alerts.stage import Stage
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor
from tests.factories.races import at_once

DOWN, UP = HealthStatus.DOWN, HealthStatus.HEALTHY


@pytest.fixture
def connected(stage: Stage) -> Stage:
    connected_vendor(stage.cast.org, "acme")
    return stage


def test_a_vendor_that_comes_and_goes_within_minutes_is_told_once(connected: Stage) -> None:
    told = 0
    for minute in range(180):
        connected.health("acme", DOWN if minute % 4 < 3 else UP)
        told += connected.round(1)
    assert told == 1
    assert connected.alert().ended_at is None


def test_a_cause_begins_once_in_an_hour(connected: Stage) -> None:
    for minute in range(180):
        connected.health("acme", DOWN if minute % 20 < 10 else UP)
        connected.round(1)
    types = [event["type"] for event in connected.events()]
    assert types == ["alert.began", "alert.ended"] * 3


@pytest.mark.parametrize(("status", "failures"), [(HealthStatus.UNKNOWN, 0), (HealthStatus.DEGRADED, 1)])
def test_a_state_that_says_nothing_ends_nothing(connected: Stage, status: HealthStatus, failures: int) -> None:
    connected.health("acme", DOWN)
    connected.round()
    connected.health("acme", status, failures=failures)
    connected.round(10)
    connected.round(10)
    assert connected.alert().ended_at is None
    assert len(connected.events()) == 1


def test_a_slow_vendor_responds_again(connected: Stage) -> None:
    connected.health("acme", DOWN)
    connected.round()
    connected.health("acme", HealthStatus.DEGRADED)
    connected.round(1)
    connected.round(6)
    assert [event["type"] for event in connected.events()] == ["alert.began", "alert.ended"]


def test_a_kind_that_is_muted_is_seen_and_not_told(connected: Stage) -> None:
    connected.change(kinds=["plan_past_due"])
    connected.health("acme", DOWN)
    assert connected.round() == 0
    assert (connected.alert().told_level, connected.alert().ended_at) == (0, None)
    connected.change(kinds=["vendor_down"])
    assert connected.round() == 1


def test_quiet_hours_hold_messages_back_to_their_end(connected: Stage) -> None:
    connected.change(quiet_from="11:00", quiet_until="13:00")
    connected.health("acme", DOWN)
    assert connected.round() == 0
    assert connected.round(59) == 0
    assert connected.round(1) == 1


def test_what_was_over_before_the_end_of_quiet_hours_is_never_told(connected: Stage) -> None:
    connected.change(quiet_from="11:00", quiet_until="13:00")
    connected.health("acme", DOWN)
    connected.round()
    connected.health("acme", UP)
    connected.round(1)
    connected.round(10)
    assert connected.round(60) == 0
    assert connected.alert().ended_at is not None


def test_an_end_in_quiet_hours_is_told_after_them(connected: Stage) -> None:
    connected.health("acme", DOWN)
    connected.round()
    connected.change(quiet_from="12:00", quiet_until="13:00")
    connected.health("acme", UP)
    connected.round(1)
    assert connected.round(10) == 0
    assert connected.round(50) == 1


@pytest.mark.parametrize(
    ("hours", "zone", "now", "end"),
    [
        (("22:00", "06:00"), "UTC", (10, 23, 0), (11, 6, 0)),
        (("22:00", "06:00"), "UTC", (10, 5, 59), (10, 6, 0)),
        (("22:00", "06:00"), "UTC", (10, 6, 0), None),
        (("22:00", "06:00"), "UTC", (10, 12, 0), None),
        (("08:00", "09:00"), "Europe/Berlin", (10, 7, 30), (10, 8, 0)),
        (("08:00", "09:00"), "Europe/Berlin", (10, 8, 0), None),
        (("08:00", "08:00"), "UTC", (10, 8, 0), None),
        # The clocks go forward on 2026-03-29 at 01:00 UTC.
        (("22:00", "06:00"), "Europe/Berlin", (28, 23, 0), (29, 4, 0)),
    ],
)
def test_the_end_of_quiet_hours(
    cast: Cast, hours: tuple[str, str], zone: str, now: tuple[int, int, int], end: tuple[int, int, int] | None
) -> None:
    begin, until = (int(each[:2]) * 60 + int(each[3:]) for each in hours)
    row = AlertSettings(organization=cast.org, quiet_from=begin, quiet_until=until, time_zone=zone)
    assert quiet_end(row, _march(*now)) == (None if end is None else _march(*end))


def _march(day: int, hour: int, minute: int) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def test_settings_that_make_no_sense_change_nothing(connected: Stage) -> None:
    bad: dict[str, dict[str, Any]] = {
        "kinds": {"kinds": ["sunrise"]},
        "quietFrom": {"quiet_from": "25:00"},
        "quietUntil": {"quiet_until": "6"},
        "timeZone": {"time_zone": "Moon/Base"},
    }
    for member, change in bad.items():
        with pytest.raises(Invalid) as refusal:
            connected.change(**change)
        assert list(refusal.value.fields) == [member]
    row = AlertSettings.objects.get(pk=connected.cast.org.pk)
    assert (row.muted_kinds, row.quiet_from, row.time_zone) == ([], 0, "UTC")


def test_a_round_that_fails_tells_nothing_and_loses_nothing(connected: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    connected.health("acme", DOWN)
    with monkeypatch.context() as patched:

        def fail(*_: object, **__: object) -> int:
            raise RuntimeError("no room")

        patched.setattr("proxy.control_plane.alerts.messages.queue_all", fail)
        with pytest.raises(RuntimeError):
            connected.round()
    assert not Alert.objects.exists()
    assert not AlertMessage.objects.exists()
    assert connected.round() == 1


def test_rounds_at_once_tell_once(connected: Stage) -> None:
    connected.health("acme", DOWN)
    connected.keep_states()
    told = at_once(*[watch] * 8)
    assert sorted(map(str, told)) == [*"0000000", "1"]
    assert AlertMessage.objects.count() == 1


def test_a_new_deployment_does_not_read_its_history(stage: Stage) -> None:
    with transaction.atomic():
        batch = take(CURSOR, Log.ADMIN, 10)
    assert batch is not None
    assert not list(batch.rows)


def test_old_messages_go_and_open_alerts_stay(connected: Stage) -> None:
    connected.change(webhook_url="")
    connected.health("acme", DOWN)
    connected.round()
    connected.traveller.shift(timedelta(days=91))
    assert listing.remove_old() == 1
    assert (AlertMessage.objects.count(), Alert.objects.count()) == (0, 1)
    connected.health("acme", UP)
    connected.round()
    connected.round(6)
    connected.traveller.shift(timedelta(days=91))
    assert listing.remove_old() == 2
    assert not Alert.objects.exists()
