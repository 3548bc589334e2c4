"""The figures of one process in a file of the host's folder, for the program that answers Prometheus.

A process has a place: a role and the lowest free number. Its lock is held until the process ends, however it ends, so
a reader knows which gauges still hold. The next process at the place goes on from the counts of the last one: a counter
of the host never falls, and there are never more files than processes at one time.   docs/decisions/0076
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from gateway.lib import build_info
from gateway.lib.metrics.figures import Figure, Histogram, Labels, all_figures

_LOCK_SUFFIX, _FIGURES_SUFFIX = ".lock", ".figures"
_PLACE = re.compile(r"(?P<role>[a-z]+)-[0-9]+")


class Series(msgspec.Struct, array_like=True):
    """One figure under one set of label values. `value`: the sum of a histogram. `buckets`: only a histogram's."""

    labels: Labels
    value: float
    buckets: list[float] = []


class Snapshot(msgspec.Struct):
    """`build`: figures of another build may have other labels and bounds, and are not added to."""

    build: str
    figures: dict[str, list[Series]]


@dataclass(frozen=True, slots=True)
class Written:
    """The snapshot of one place. `is_live`: its process runs."""

    role: str
    is_live: bool
    snapshot: Snapshot


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Snapshot).decode


class ProcessFile:
    """Takes its place with the first `write`. One for each process."""

    def __init__(self, folder: Path, role: str) -> None:
        self._folder, self._role = folder, role
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._held: int | None = None
        self._before: dict[str, dict[Labels, Series]] = {}  # counts of earlier processes at this place
        self._pid = os.getpid()

    def write(self) -> None:
        """Replaces the file. Raises: OSError."""
        with self._lock:
            if self._pid != os.getpid():
                self._leave_to_parent()
            path = self._path or self._take_place()
            figures = {figure.name: self._series(figure) for figure in all_figures()}
            draft = path.with_suffix(".draft")
            draft.write_bytes(_encode(Snapshot(_build(), figures)))
            draft.replace(path)

    def _take_place(self) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in count():
            stem = self._folder / f"{self._role}-{number}"
            held = os.open(stem.with_suffix(_LOCK_SUFFIX), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(held)
                continue
            self._held, self._path = held, stem.with_suffix(_FIGURES_SUFFIX)
            self._before = _counts_in(self._path)
            return self._path
        raise AssertionError("unreachable")

    def _series(self, figure: Figure) -> list[Series]:
        buckets = figure.buckets if isinstance(figure, Histogram) else {}
        # Copies first: other threads count meanwhile, and may add labels.
        own = [Series(labels, value, list(buckets.get(labels, ()))) for labels, value in figure.values.copy().items()]
        before = self._before.get(figure.name)
        if not before:
            return own
        added = {series.labels: _sum(series, before.get(series.labels)) for series in own}
        return list({**before, **added}.values())

    def _leave_to_parent(self) -> None:
        # After a fork. The lock is held as long as one of both has it open.
        if self._held is not None:
            os.close(self._held)
        self._held = self._path = None
        self._before, self._pid = {}, os.getpid()


def read_all(folder: Path) -> list[Written]:
    """The snapshots of all places; those of another build are left out."""
    found = []
    for path in sorted(folder.glob(f"*{_FIGURES_SUFFIX}")):
        place = _PLACE.fullmatch(path.stem)
        snapshot = _read(path)
        if place is not None and snapshot is not None:
            found.append(Written(place["role"], _is_held(path.with_suffix(_LOCK_SUFFIX)), snapshot))
    return found


def remove_ended(folder: Path) -> None:
    """Removes the figures of processes that have ended. Their lock files stay: a process may be taking one."""
    for path in folder.glob(f"*{_FIGURES_SUFFIX}"):
        if not _is_held(path.with_suffix(_LOCK_SUFFIX)):
            path.unlink(missing_ok=True)


def _counts_in(path: Path) -> dict[str, dict[Labels, Series]]:
    """Counters and histograms of the file, and gauges that outlive their process."""
    snapshot = _read(path)
    if snapshot is None:
        return {}
    kept = {figure.name for figure in all_figures() if figure.kind != "gauge"}
    return {
        name: {series.labels: series for series in figures}
        for name, figures in snapshot.figures.items()
        if name in kept
    }


def _sum(own: Series, before: Series | None) -> Series:
    if before is None:
        return own
    buckets = [one + other for one, other in zip(own.buckets, before.buckets, strict=True)]
    return Series(own.labels, own.value + before.value, buckets)


def _read(path: Path) -> Snapshot | None:
    try:
        snapshot = _decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    return snapshot if snapshot.build == _build() else None


def _is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _build() -> str:
    info = build_info.current()
    return f"{info.version} {info.commit}"
