"""Figures that the database knows, the same on every host. One that does not answer leaves `gateway_database_up 0`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import structlog
from django.db import DatabaseError, InterfaceError
from django.db.models import Case, Count, Value, When
from prometheus_client.core import GaugeMetricFamily, Metric

from audit import partitions
from audit.models import LogDestination
from audit.shipping.waiting import Lag, lag_of, with_waiting_records
from audit.shipping_models import DestinationStatus
from audit.stream import first_waiting
from audit.usage.rollup import CONSUMER, LOG
from gateway.doctor.key_ages import current_ages
from gateway.lib import clock
from gateway.lib.database_threads import with_own_connection
from gateway.lib.metrics.names import PLATFORMS

# Destinations whose records are counted in one round, longest due first. Past it the lag is that of these.
MOST_DESTINATIONS = 100
log = structlog.get_logger(__name__)
NAMES = {
    "gateway_database_up": "1 while the database answers this host.",
    "gateway_rollup_lag_seconds": "Age of the oldest call that the usage roll-ups do not have yet.",
    "gateway_log_shipping_lag_records": "Log records that wait for enabled destinations, 100,000 at most for each.",
    "gateway_log_shipping_lag_seconds": "Age of the oldest log record that waits for an enabled destination.",
    "gateway_log_shipping_overdue_seconds": (
        "Time for which a due delivery has waited for a process, except to destinations whose last attempt failed."
    ),
    "gateway_log_destinations": "Enabled destinations of log shipping by what became of the last attempt.",
    "gateway_key_age_seconds": "Time for which the key of this kind has been in use.",
    "gateway_audit_partitions_ahead": "Months after this one that have a partition of the request log.",
}


def read_deployment() -> list[Metric]:
    try:
        return [metric_of("gateway_database_up", 1), *with_own_connection(_read)]
    except (DatabaseError, InterfaceError) as fault:
        log.warning("metrics.database_not_read", fault=type(fault).__name__)
        return [metric_of("gateway_database_up", 0)]


def metric_of(name: str, value: float) -> Metric:
    return GaugeMetricFamily(name, NAMES[name], value=value)


def _read() -> list[Metric]:
    found = [_rollup_lag(), *_shipping_lag(), _destinations(), _key_ages()]
    if partitions.is_partitioned():
        found.append(metric_of("gateway_audit_partitions_ahead", partitions.months_ahead(clock.now())))
    return found


def _rollup_lag() -> Metric:
    waiting = first_waiting(CONSUMER, LOG)
    lag_s = 0.0 if waiting is None else max(0.0, (clock.now() - waiting.timestamp).total_seconds())
    return metric_of("gateway_rollup_lag_seconds", lag_s)


def _shipping_lag() -> list[Metric]:
    records, seconds, overdue = (defaultdict[str, float](float) for _ in range(3))
    now, enabled = clock.now(), LogDestination.objects.filter(enabled=True)
    for destination in with_waiting_records(enabled).order_by("next_attempt_at")[:MOST_DESTINATIONS]:
        lag, platform = lag_of(destination), destination.platform
        records[platform] += lag.records
        seconds[platform] = max(seconds[platform], lag.seconds(now))
        overdue[platform] = max(overdue[platform], _overdue_s(destination, lag, now))
    return [
        _by_platform("gateway_log_shipping_lag_records", records),
        _by_platform("gateway_log_shipping_lag_seconds", seconds),
        _by_platform("gateway_log_shipping_overdue_seconds", overdue),
    ]


def _overdue_s(destination: LogDestination, lag: Lag, now: datetime) -> float:
    """0 after a failure: the next attempt waits for its time, and for a place among those that fail."""
    if destination.failures or lag.oldest is None:
        return 0.0
    return max(0.0, (now - max(destination.next_attempt_at, lag.oldest)).total_seconds())


def _by_platform(name: str, values: Mapping[str, float]) -> Metric:
    metric = GaugeMetricFamily(name, NAMES[name], labels=("platform",))
    for platform in PLATFORMS:
        metric.add_metric((platform,), values.get(platform, 0.0))
    return metric


def _destinations() -> Metric:
    state = Case(When(failures__gt=0, then=Value("failing")), When(status=DestinationStatus.OK, then=Value("well")))
    rows = LogDestination.objects.filter(enabled=True).annotate(state=state).values_list("platform", "state")
    numbers = {(platform, name): number for platform, name, number in rows.annotate(Count("pk")).order_by()}
    metric = GaugeMetricFamily(
        "gateway_log_destinations", NAMES["gateway_log_destinations"], labels=("platform", "state")
    )
    for platform in PLATFORMS:
        for name in ("well", "failing"):
            metric.add_metric((platform, name), numbers.get((platform, name), 0))
    return metric


def _key_ages() -> Metric:
    metric = GaugeMetricFamily("gateway_key_age_seconds", NAMES["gateway_key_age_seconds"], labels=("kind",))
    for kind, age_s in sorted(current_ages(clock.now()).items()):
        metric.add_metric((kind,), age_s)
    return metric
