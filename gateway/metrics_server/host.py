"""The figures of one host, as a source of the Prometheus library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from gateway.lib import build_info
from gateway.lib.metrics.process_file import read_all
from gateway.metrics_server.merging import metrics_of


class Source(Protocol):
    def collect(self) -> Iterator[Metric]: ...


class HostFigures:
    """Build, and the figures of all processes of the host, read at each scrape."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        info = build_info.current()
        build = GaugeMetricFamily("gateway_build_info", "The build that runs; always 1.", labels=("version", "commit"))
        build.add_metric((info.version, info.commit), 1)
        yield build
        yield from metrics_of(read_all(self._folder))


def registry_of(*sources: Source) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    for source in sources:
        registry.register(source)
    return registry
