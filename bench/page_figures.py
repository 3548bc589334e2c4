"""The costs of one page: time in the server, statements, and the bytes of a first visit with everything it loads."""

from __future__ import annotations

import gzip
import math
import re
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus

from django.contrib.staticfiles import finders
from django.test import Client as Browser

from tests.factories.statements import statements

TIME_GOAL_MS, QUERY_GOAL, BYTES_GOAL = 150, 15, 100_000
# The same on every machine and on every day.
FIRM = frozenset(("queries", "bytes"))
LOADED = re.compile(r'(?:src|href)="/static/([^"#?]+)')
IMPORTED = re.compile(r'from "\./(\w+\.js)"')


@dataclass(frozen=True, slots=True)
class Visit:
    """`sent` are the bytes of the page and of all that it loads, as a browser with an empty cache gets them.

    `cpu_ms`: of this process for one visit. The database's is not in it.
    """

    route: str
    status: int
    times_ms: tuple[float, ...]
    cpu_ms: float
    queries: int
    sent: int
    html: int

    def time_ms(self, share: float) -> float:
        """The time that `share` of the visits do not exceed, by nearest rank. `share`: above 0, at most 1."""
        return sorted(self.times_ms)[math.ceil(share * len(self.times_ms)) - 1]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)

    @property
    def beyond(self) -> list[str]:
        """The goals that the page misses."""
        missed = {
            "time": bool(self.times_ms) and self.time_ms(0.95) > TIME_GOAL_MS,
            "queries": self.queries > QUERY_GOAL,
            "bytes": self.sent > BYTES_GOAL,
        }
        return [name for name, is_missed in missed.items() if is_missed]

    @property
    def fails(self) -> bool:
        """Whether it misses a goal that no load of the machine explains."""
        return not FIRM.isdisjoint(self.beyond)


def visits(browser: Browser, paths: Mapping[str, str], *, times: int) -> Iterator[Visit]:
    """Each page that answers this person with 200, seen `times` times after one that is not counted."""
    for route, path in paths.items():
        with statements() as queries:
            first = browser.get(path, headers={"Accept-Encoding": "gzip"})
        if first.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise RuntimeError(f"{path} was opened too often; the figures would be those of a refusal")
        if first.status_code != HTTPStatus.OK:
            continue
        began = time.process_time()
        took = tuple(_timed(browser, path) for _ in range(times))
        cpu_ms = (time.process_time() - began) * 1000 / max(1, times)
        page = gzip.decompress(first.content) if first.has_header("Content-Encoding") else first.content
        yield Visit(route, first.status_code, took, cpu_ms, len(queries), _sent(len(first.content), page), len(page))


def _timed(browser: Browser, path: str) -> float:
    began = time.perf_counter()
    answer = browser.get(path, headers={"Accept-Encoding": "gzip"})
    took_ms = (time.perf_counter() - began) * 1000
    if answer.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{path} answered {answer.status_code} after it had answered 200")
    return took_ms


def _sent(page_bytes: int, page: bytes) -> int:
    files = set(LOADED.findall(page.decode()))
    return page_bytes + sum(sent_of_file(name) for name in files | imports(files))


def imports(files: set[str]) -> set[str]:
    """The scripts that `files` import."""
    scripts = {name for name in files if name.endswith(".js") and name.startswith("js/")}
    return {f"js/{found}" for name in scripts for found in IMPORTED.findall(content_of(name).decode())}


@cache
def content_of(name: str) -> bytes:
    """A static file. Raises: FileNotFoundError."""
    path = finders.find(name)
    if not isinstance(path, str):
        raise FileNotFoundError(name)
    with open(path, "rb") as file:
        return file.read()


@cache
def sent_of_file(name: str) -> int:
    """Its bytes on the wire."""
    content = content_of(name)
    return min(len(content), len(gzip.compress(content)))
