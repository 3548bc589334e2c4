"""Pure: the statements of one connection, read from the bytes that a client sends to PostgreSQL.

A statement counts when it is run: each simple query, and each Execute of the extended protocol. A connection of the
pool is checked with an empty statement before each use, so the statements from one check to the next are one use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

SHOWN_CHARACTERS = 60
CHECK = ""
# The statement that makes a batch of call records durable, a transaction of its own.
COMMIT = "INSERT INTO audit_requestauditentry"
# A process looks for bumps that others left also without calls; those statements are not counted.
OUTBOX = ('"coordination_pendingbump"',)
# A list that was fetched is compared with the known tools in a thread of its own, once for each change of it.
COMPARISON = ('"orgs_knowntool"', '"orgs_toollook"')
COMPARED = "behind the calls: a new tool list is compared"
_SPACE = re.compile(r"\s+")


def shortened(sql: str) -> str:
    return _SPACE.sub(" ", sql).strip()[:SHOWN_CHARACTERS]


class StatementReader:
    """Takes what a client sends, in parts of any size. The first message, the start-up, has no type byte."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._has_begun = False
        self._prepared: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}

    def feed(self, data: bytes) -> list[str]:
        """The statements that these bytes complete."""
        self._kept += data
        return [sql for kind, body in self._messages() for sql in self._read(kind, body)]

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            head = 1 if self._has_begun else 0
            if len(self._kept) < head + 4:
                return
            end = head + int.from_bytes(self._kept[head : head + 4], "big")
            if len(self._kept) < end:
                return
            kind, body = bytes(self._kept[:head]), bytes(self._kept[head + 4 : end])
            del self._kept[:end]
            if kind:
                yield kind, body
            self._has_begun = True

    def _read(self, kind: bytes, body: bytes) -> Iterator[str]:
        if kind == b"Q":
            yield body.rstrip(b"\0").decode("utf-8", "replace")
        elif kind == b"P":
            name, sql, *_ = body.split(b"\0", 2)
            self._prepared[name] = sql.decode("utf-8", "replace")
        elif kind == b"B":
            portal, name, *_ = body.split(b"\0", 2)
            self._portals[portal] = self._prepared.get(name, "")
        elif kind == b"E":
            yield self._portals.get(body.split(b"\0", 1)[0], "")


class Uses:
    """Splits the statements of one connection into uses. One that was never checked is not of the pool."""

    def __init__(self) -> None:
        self._open: list[str] | None = None

    def add(self, statements: Sequence[str]) -> list[str]:
        """Names of the statements whose use is over."""
        found = []
        for sql in statements:
            if sql == CHECK:
                found += named(self._open or [])
                self._open = [sql]
            elif self._open is not None:
                self._open.append(sql)
            else:
                found.append(shortened(sql))
        return found


def named(use: Sequence[str]) -> list[str]:
    """Names of the statements of one use: their texts, unless the use is one that calls do not wait for."""
    if any(table in sql for sql in use for table in OUTBOX):
        return []
    if any(table in sql for sql in use for table in COMPARISON):
        return [COMPARED] * len(use)
    return [shortened(sql) for sql in use]


class StatementCounts:
    """Statements by name since the last `take`."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, names: Sequence[str]) -> None:
        self._counts.update(names)

    def take(self) -> dict[str, int]:
        taken, self._counts = dict(self._counts), Counter()
        return taken


def of_calls(counts: Mapping[str, float]) -> float:
    """How many statements are neither of the commit of call records nor behind the calls."""
    return sum(count for name, count in counts.items() if name != COMPARED and not name.startswith(COMMIT))
