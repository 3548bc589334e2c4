"""Figures as Prometheus gets them."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway.metrics_server.host import HostFigures, Source, registry_of

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]  # by name and labels


def scraped(folder: Path, *more: Source) -> str:
    """The text that the metrics server would answer now."""
    return generate_latest(registry_of(HostFigures(folder), *more)).decode()


def samples_of(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value_of(text: str, name: str, **labels: str) -> float | None:
    return samples_of(text).get((name, tuple(sorted(labels.items()))))
