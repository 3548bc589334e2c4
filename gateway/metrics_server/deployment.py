"""Figures that the database knows, the same on every host. One that does not answer leaves `gateway_database_up 0`."""

from __future__ import annotations

from collections import defaultdict

import structlog
from django.db import DatabaseError, InterfaceError
from prometheus_client.core import GaugeMetricFamily, Metric

from audit import partitions
from audit.models import LogDestination
from audit.shipping.waiting import lag_of, with_waiting_records
from audit.stream import first_waiting
from audit.usage.rollup import CONSUMER, LOG
from gateway.doctor.key_ages import current_ages
from gateway.lib import clock
from gateway.lib.database_threads import with_own_connection
from gateway.lib.metrics.names import PLATFORMS

# Destinations that are counted in one round. Past it the lag is that of these, which is alarm enough.
MOST_DESTINATIONS = 100
log = structlog.get_logger(__name__)
NAMES = {
    "gateway_database_up": "1 while the database answers this host.",
    "gateway_rollup_lag_seconds": "Age of the oldest call that the usage roll-ups do not have yet.",
    "gateway_log_shipping_lag_records": "Log records that wait for enabled destinations, 100,000 at most for each.",
    "gateway_log_shipping_lag_seconds": "Age of the oldest log record that waits for an enabled destination.",
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
    found = [_rollup_lag(), *_shipping_lag(), _key_ages()]
    if partitions.is_partitioned():
        found.append(metric_of("gateway_audit_partitions_ahead", partitions.months_ahead(clock.now())))
    return found


def _rollup_lag() -> Metric:
    waiting = first_waiting(CONSUMER, LOG)
    lag_s = 0.0 if waiting is None else max(0.0, (clock.now() - waiting.timestamp).total_seconds())
    return metric_of("gateway_rollup_lag_seconds", lag_s)


def _shipping_lag() -> list[Metric]:
    records: dict[str, int] = defaultdict(int)
    seconds: dict[str, int] = defaultdict(int)
    now = clock.now()
    for destination in with_waiting_records(LogDestination.objects.filter(enabled=True))[:MOST_DESTINATIONS]:
        lag = lag_of(destination)
        records[destination.platform] += lag.records
        seconds[destination.platform] = max(seconds[destination.platform], lag.seconds(now))
    metrics: list[Metric] = []
    for name, values in (
        ("gateway_log_shipping_lag_records", records),
        ("gateway_log_shipping_lag_seconds", seconds),
    ):
        metric = GaugeMetricFamily(name, NAMES[name], labels=("platform",))
        for platform in PLATFORMS:
            metric.add_metric((platform,), values[platform])
        metrics.append(metric)
    return metrics


def _key_ages() -> Metric:
    metric = GaugeMetricFamily("gateway_key_age_seconds", NAMES["gateway_key_age_seconds"], labels=("kind",))
    for kind, age_s in sorted(current_ages(clock.now()).items()):
        metric.add_metric((kind,), age_s)
    return metric
