"""The schedule samples each part; rows of days hold how long each state lasted, and no call has a share in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import StreamCursor
from audit.seals import CURSOR as SEALS
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.coordination.store import CoordinationUnavailable
from gateway.keys.models import KeyHolder
from gateway.lib import clock, guarded_client
from gateway.lib.guarded_client import OutboundTimeout
from gateway.settings import workers
from gateway.status.models import PartDay, PartStatus
from gateway.status.parts import BACKGROUND, CALLS, PAGES, SIGN_IN, VENDORS, Status, of_vendor
from gateway.status.samples import KEPT_DAYS, record_samples
from proxy import tasks
from proxy.control_plane.health.leader import vendors_to_probe
from proxy.control_plane.health.states import HealthStatus
from proxy.control_plane.status_samples import take_samples
from tests.api.doctor.test_doctor import DOCUMENT, PROVIDER, answering, raising
from tests.factories.cast import Cast
from tests.factories.health import connected_vendor, put_health
from tests.factories.tenant import load_vendor

NOON = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def days(part: str) -> list[tuple[str, int, int, int]]:
    rows = PartDay.objects.filter(part=part).order_by("day")
    return [(row.day.isoformat(), row.operational_s, row.degraded_s, row.down_s) for row in rows]


def statuses() -> dict[str, str]:
    return dict(PartStatus.objects.values_list("part", "status"))


def running(*roles: str) -> None:
    KeyHolder.objects.all().delete()
    for role in roles:
        KeyHolder.objects.create(name=f"{role} host:1", key_names=[])


@pytest.fixture
def idp(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OIDC_OP_DISCOVERY_URL = f"{PROVIDER}/.well-known/openid-configuration"
    monkeypatch.setattr(guarded_client, "send", answering(200, json.dumps(DOCUMENT).encode()))


@pytest.mark.django_db
def test_time_counts_for_the_status_that_it_had() -> None:
    record_samples({CALLS: Status.OPERATIONAL}, now=NOON)
    assert days(CALLS) == []
    record_samples({CALLS: Status.DOWN}, now=NOON + MINUTE)
    record_samples({CALLS: Status.DEGRADED}, now=NOON + 3 * MINUTE)
    record_samples({CALLS: Status.UNKNOWN}, now=NOON + 4 * MINUTE)
    record_samples({CALLS: Status.OPERATIONAL}, now=NOON + 5 * MINUTE)
    assert days(CALLS) == [("2027-01-31", 60, 60, 120)]
    row = PartStatus.objects.get(part=CALLS)
    assert (row.status, row.since, row.checked_at) == ("operational", NOON + 5 * MINUTE, NOON + 5 * MINUTE)
    record_samples({CALLS: Status.OPERATIONAL}, now=NOON + 6 * MINUTE)
    assert PartStatus.objects.get(part=CALLS).since == NOON + 5 * MINUTE


@pytest.mark.django_db
def test_midnight_divides_it_and_the_same_sample_twice_counts_once() -> None:
    late = datetime(2027, 1, 31, 23, 59, 30, tzinfo=UTC)
    record_samples({CALLS: Status.OPERATIONAL}, now=late)
    for _ in range(2):
        record_samples({CALLS: Status.OPERATIONAL}, now=late + MINUTE)
    record_samples({CALLS: Status.DOWN}, now=late)
    assert days(CALLS) == [("2027-01-31", 30, 0, 0), ("2027-02-01", 30, 0, 0)]
    assert statuses() == {CALLS: "operational"}


@pytest.mark.django_db
def test_a_silence_is_an_outage_of_background_work_and_of_nothing_else() -> None:
    both = {CALLS: Status.OPERATIONAL, BACKGROUND: Status.OPERATIONAL}
    record_samples(both, now=NOON)
    record_samples(both, now=NOON + timedelta(hours=2))
    assert days(CALLS) == []
    assert days(BACKGROUND) == [("2027-01-31", 0, 0, 7_200)]


@pytest.mark.django_db
def test_days_are_kept_for_ninety_days() -> None:
    old, kept = NOON - timedelta(days=KEPT_DAYS), NOON - timedelta(days=KEPT_DAYS - 1)
    PartDay.objects.bulk_create([PartDay(part=CALLS, day=each.date(), down_s=5) for each in (old, kept)])
    both = {CALLS: Status.OPERATIONAL, BACKGROUND: Status.OPERATIONAL}
    record_samples(both, now=NOON)
    assert [day for day, *_ in days(CALLS)] == [kept.date().isoformat()]
    record_samples(both, now=NOON + timedelta(days=400))
    assert len(days(BACKGROUND)) == KEPT_DAYS
    assert days(CALLS) == [], "nothing of before is left"


@pytest.mark.django_db
def test_many_vendors_cost_no_statement_more() -> None:
    def cost(parts: int) -> int:
        found = {of_vendor(f"v{number}"): Status.OPERATIONAL for number in range(parts)}
        record_samples(found, now=NOON)
        record_samples(found, now=NOON + MINUTE)
        with CaptureQueriesContext(connection) as captured:
            record_samples(found, now=NOON + 2 * MINUTE)
        PartStatus.objects.all().delete()
        PartDay.objects.all().delete()
        return len(captured)

    assert cost(2) == cost(40)


@pytest.mark.usefixtures("idp")
def test_everything_runs(cast: Cast, shared: SQLiteStore) -> None:
    running("web", "worker", "shipping")
    connected_vendor(cast.org, "alpha")
    connected_vendor(cast.org, "hosted", hosted=True)
    put_health(shared, "alpha", HealthStatus.REACHABLE)
    take_samples(shared)
    found = dict.fromkeys((CALLS, PAGES, SIGN_IN, BACKGROUND, VENDORS, of_vendor("alpha")), "operational")
    assert statuses() == found


@pytest.mark.usefixtures("idp", "cast")
def test_without_a_web_process_calls_and_pages_are_down(shared: SQLiteStore) -> None:
    running("worker")
    KeyHolder.objects.create(name="web host:2", key_names=[], seen_at=clock.now() - timedelta(minutes=3))
    take_samples(shared)
    found = statuses()
    assert (found[CALLS], found[PAGES], found[BACKGROUND]) == ("down", "down", "degraded")


@pytest.mark.usefixtures("idp", "cast")
def test_without_the_store_calls_are_degraded(shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    running("web", "shipping")

    def away() -> None:
        raise CoordinationUnavailable("away")

    monkeypatch.setattr(shared, "ping", away)
    take_samples(shared)
    found = statuses()
    assert (found[CALLS], found[PAGES]) == ("degraded", "operational")


@pytest.mark.usefixtures("idp", "cast")
def test_sign_in_is_down_after_two_failures(shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr(guarded_client, "send", raising(OutboundTimeout("x")))
    for _ in range(3):
        take_samples(shared)
        found.append(statuses()[SIGN_IN])
    monkeypatch.setattr(guarded_client, "send", answering(200, json.dumps(DOCUMENT).encode()))
    take_samples(shared)
    assert [*found, statuses()[SIGN_IN]] == ["degraded", "down", "down", "operational"]


@pytest.mark.usefixtures("idp", "cast")
def test_background_work_that_lags_is_degraded(shared: SQLiteStore) -> None:
    running("web", "shipping")
    StreamCursor.objects.create(name=SEALS, log="requests", reached_at=clock.now() - timedelta(minutes=6))
    take_samples(shared)
    assert statuses()[BACKGROUND] == "degraded"


@pytest.mark.usefixtures("idp")
def test_vendors_together_are_down_if_all_are(cast: Cast, shared: SQLiteStore) -> None:
    for slug in ("alpha", "beta"):
        connected_vendor(cast.org, slug)
    take_samples(shared)
    assert statuses()[VENDORS] == "unknown"
    put_health(shared, "alpha", HealthStatus.DOWN)
    put_health(shared, "beta", HealthStatus.HEALTHY)
    take_samples(shared)
    found = statuses()
    assert (found[VENDORS], found[of_vendor("alpha")], found[of_vendor("beta")]) == ("degraded", "down", "operational")
    put_health(shared, "beta", HealthStatus.DOWN)
    take_samples(shared)
    assert statuses()[VENDORS] == "down"


def test_a_page_that_names_vendors_has_all_of_them_probed(cast: Cast, settings: Any) -> None:
    connected_vendor(cast.org, "alpha")
    load_vendor("http://127.0.0.1:9/mcp", slug="unused")
    assert [each.slug for each in vendors_to_probe()] == ["alpha"]
    settings.STATUS_VENDORS = True
    assert [each.slug for each in vendors_to_probe()] == ["alpha", "unused"]


@pytest.mark.usefixtures("idp", "cast")
def test_of_several_workers_one_samples(shared: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[object] = []
    monkeypatch.setattr(tasks, "take_samples", taken.append)
    tasks.record_status()
    tasks.record_status()
    assert taken == [shared]
    entry = workers.CELERY_BEAT_SCHEDULE["proxy.record_status"]
    assert entry["task"] == tasks.record_status.name
