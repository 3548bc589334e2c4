"""Figures that the database knows, and the alerts over them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from audit import partitions
from audit.models import LogDestination
from audit.usage.rollup import roll_up_all
from gateway.lib import clock
from gateway.lib.guarded_client import Response
from gateway.lib.metrics import figures, names
from gateway.lib.metrics.process_file import ProcessFile
from gateway.metrics_server import deployment
from gateway.metrics_server.deployment import read_deployment
from gateway.metrics_server.rounds import Rounds
from tests.api.audit.shipping.stage import PlayedPlatform, deliver_all, make_destination, record_calls
from tests.factories.alerts import firing
from tests.factories.figures import scraped, value_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_figures() -> Iterator[None]:
    figures.reset_all()
    yield
    figures.reset_all()


class Host:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = ProcessFile(folder, "worker")
        ProcessFile(folder, "web").write()

    def scrape(self) -> str:
        self._file.write()
        figures_of_all = Rounds("deployment", read_deployment)
        figures_of_all.read()
        return scraped(self._folder, figures_of_all)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_rows_that_no_roll_up_has(host: Host) -> None:
    text = host.scrape()
    assert (value_of(text, "gateway_rollup_lag_seconds"), value_of(text, "gateway_database_up")) == (0, 1)
    assert firing(text) == set()
    record_calls("r-1", timestamp=clock.now() - timedelta(seconds=400))
    text = host.scrape()
    assert 400 <= (value_of(text, "gateway_rollup_lag_seconds") or 0) < 600
    assert firing(text) == {"GatewayRollupBehind"}
    roll_up_all()
    assert firing(host.scrape()) == set()


def due_for(destination: LogDestination, seconds: int) -> None:
    LogDestination.objects.filter(pk=destination.pk).update(next_attempt_at=clock.now() + timedelta(seconds=seconds))


def test_deliveries_that_no_process_makes(host: Host) -> None:
    destination = make_destination()
    due_for(destination, -300)
    record_calls("r-1", "r-2", timestamp=clock.now() - timedelta(seconds=400))
    roll_up_all()
    before = host.scrape()
    assert value_of(before, "gateway_log_shipping_lag_records", platform="webhook") >= 2  # type: ignore[operator]
    assert value_of(before, "gateway_log_shipping_lag_records", platform="platform_a") == 0
    assert 300 <= (value_of(before, "gateway_log_shipping_overdue_seconds", platform="webhook") or 0) < 390
    assert firing(before, host.scrape(), apart_s=15) == {"GatewayLogShippingBehind"}
    # Another destination of the platform gets its records: shipping works.
    names.SHIPPING_DELIVERED.add("webhook", "delivered", amount=5)
    assert firing(before, host.scrape(), apart_s=15) == set()
    # A delivery that is not due waits for its time.
    due_for(destination, 60)
    before = host.scrape()
    assert firing(before, host.scrape(), apart_s=15) == set()


def test_destinations_that_take_nothing_are_not_the_lag_of_the_gateway(host: Host) -> None:
    destination = make_destination()
    record_calls("r-1", timestamp=clock.now() - timedelta(seconds=400))
    roll_up_all()
    deliver_all(PlayedPlatform([Response(401, {}, b"who are you")]))
    due_for(destination, -300)
    text = host.scrape()
    assert value_of(text, "gateway_log_shipping_lag_seconds", platform="webhook") >= 400  # type: ignore[operator]
    assert value_of(text, "gateway_log_destinations", platform="webhook", state="failing") == 1
    assert firing(text) == {"GatewayLogDestinationsFailing"}
    # With another that takes its records, it is one organization's own matter.
    LogDestination.objects.filter(pk=make_destination().pk).update(status="ok", next_attempt_at=clock.now())
    assert firing(host.scrape()) == set()


def test_a_database_that_does_not_answer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    assert firing(host.scrape()) == set()

    def refuse(*args: object) -> None:
        raise OperationalError("no answer")

    monkeypatch.setattr(deployment, "first_waiting", refuse)
    text = host.scrape()
    assert value_of(text, "gateway_rollup_lag_seconds") is None, "a figure of before is none of now"
    assert firing(text) == {"GatewayDatabaseAway"}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps one table")
def test_months_without_a_partition(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    partitions.make_ahead(clock.now())
    assert value_of(host.scrape(), "gateway_audit_partitions_ahead") == partitions.MONTHS_AHEAD
    later = clock.now() + timedelta(days=31 * 2)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert "GatewayPartitionsMissing" in firing(host.scrape())


def test_months_are_counted_up_to_the_first_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def month(number: int) -> partitions.Partition:
        return partitions.Partition(
            f"p{number}", datetime(2026, number, 1, tzinfo=UTC), datetime(2026, number + 1, 1, tzinfo=UTC)
        )

    for known, ahead in (([], 0), ([3], 0), ([3, 4, 5], 2), ([3, 4, 6], 1)):
        monkeypatch.setattr(partitions, "partitions", lambda known=known: [month(number) for number in known])
        assert partitions.months_ahead(datetime(2026, 3, 15, tzinfo=UTC)) == ahead
