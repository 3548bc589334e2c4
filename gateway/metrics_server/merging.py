"""The snapshots of all processes of a host as one set of Prometheus metrics."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from gateway.lib.metrics.figures import Figure, Gauge, Histogram, Labels, Merge, all_figures
from gateway.lib.metrics.names import PROCESSES
from gateway.lib.metrics.process_file import Series, Written


def metrics_of(written: Sequence[Written]) -> Iterator[Metric]:
    """Every figure that has a value. Gauges of ended processes are left out, unless they outlive them."""
    for figure in all_figures():
        if figure is PROCESSES:
            yield _processes(written)
        elif (metric := _metric_of(figure, written)).samples:
            yield metric


def _metric_of(figure: Figure, written: Sequence[Written]) -> Metric:
    needs_life = isinstance(figure, Gauge) and figure.is_live
    series = [
        each
        for one in written
        if one.is_live or not needs_life
        for each in one.snapshot.figures.get(figure.name, ())
        if _is_allowed(figure, each.labels)
    ]
    if isinstance(figure, Histogram):
        return _histogram(figure, series)
    if isinstance(figure, Gauge):
        return _gauge(figure, series)
    family = CounterMetricFamily(figure.name, figure.meaning, labels=figure.labels)
    for labels, values in _grouped(series).items():
        family.add_metric(labels, sum(each.value for each in values))
    return family


def _gauge(figure: Gauge, series: Iterable[Series]) -> Metric:
    family = GaugeMetricFamily(figure.name, figure.meaning, labels=figure.labels)
    for labels, values in _grouped(series).items():
        numbers = [each.value for each in values]
        family.add_metric(labels, sum(numbers) if figure.merge is Merge.SUM else max(numbers))
    return family


def _histogram(figure: Histogram, series: Iterable[Series]) -> Metric:
    family = HistogramMetricFamily(figure.name, figure.meaning, labels=figure.labels)
    bounds = [*map(floatToGoString, figure.bounds), "+Inf"]
    for labels, values in _grouped(series).items():
        counts = [sum(column) for column in zip(*(each.buckets for each in values), strict=True)]
        buckets = list(zip(bounds, accumulate(counts), strict=True))
        family.add_metric(labels, buckets=buckets, sum_value=sum(each.value for each in values))
    return family


def _processes(written: Iterable[Written]) -> Metric:
    roles = Count(one.role for one in written if one.is_live)
    family = GaugeMetricFamily(PROCESSES.name, PROCESSES.meaning, labels=PROCESSES.labels)
    for role in PROCESSES.closed["role"]:
        family.add_metric((role,), roles[role])
    return family


def _grouped(series: Iterable[Series]) -> dict[Labels, list[Series]]:
    groups: dict[Labels, list[Series]] = {}
    for each in series:
        groups.setdefault(each.labels, []).append(each)
    return groups


def _is_allowed(figure: Figure, labels: Labels) -> bool:
    """Whether each label has a value of its closed list. A file is only as trustworthy as its folder."""
    return len(labels) == len(figure.labels) and all(
        value in figure.closed.get(name, (value,)) for name, value in zip(figure.labels, labels, strict=True)
    )
