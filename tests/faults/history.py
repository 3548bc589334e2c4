"""Calls and answers of clients, compared with the request log: no answered call is lost or doubled."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Ending(Enum):
    """How a call ended for its client."""

    SUCCESS = "success"
    VENDOR_ERROR = "error"  # the vendor failed, and the row says so
    DENIED = "denied"
    UNAVAILABLE = "unavailable"  # 503 promises no row
    NO_ANSWER = "no answer"


class LoggedCall(NamedTuple):
    """A row of the request log."""

    request_id: str
    status: str
    error_code: str


@dataclass(frozen=True)
class Verdict:
    """Counts of a comparison, and what is wrong."""

    asked: int
    answered: int
    rows: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.asked} asked, {self.answered} answered, {self.rows} rows"


@dataclass
class History:
    """The calls by their request ids. Safe to use from several threads."""

    endings: dict[str, Ending] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def asks(self, request_id: str) -> None:
        """Noted before the request leaves."""
        with self._lock:
            assert request_id not in self.endings, "an id is asked with once"
            self.endings[request_id] = Ending.NO_ANSWER

    def answers(self, request_id: str, ending: Ending) -> None:
        """Noted when all of the answer is there."""
        with self._lock:
            self.endings[request_id] = ending

    def compare(self, rows: Iterable[LoggedCall]) -> Verdict:
        """Every answer but 503 has exactly one row with its outcome; nothing has two, and no row is of nobody."""
        found = list(rows)
        counts, statuses = Counter(row.request_id for row in found), {row.request_id: row.status for row in found}
        with self._lock:
            endings = dict(self.endings)
        problems = [f"{request_id} has {count} rows" for request_id, count in counts.items() if count > 1]
        problems += [f"{request_id} has a row, and nobody asked" for request_id in counts.keys() - endings.keys()]
        problems += _missing(endings, statuses)
        answered = sum(ending is not Ending.NO_ANSWER for ending in endings.values())
        return Verdict(len(endings), answered, len(found), tuple(sorted(problems)))


def _missing(endings: Mapping[str, Ending], statuses: Mapping[str, str]) -> list[str]:
    promised = {Ending.SUCCESS, Ending.VENDOR_ERROR, Ending.DENIED}
    return [
        f"{request_id} was answered {ending.value}, and its row says {statuses.get(request_id, 'nothing')}"
        for request_id, ending in endings.items()
        if ending in promised and statuses.get(request_id) != ending.value
    ]
