"""Pure: where the time of one call went."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType

HEADERS = (("auth", b"x-auth-ms"), ("session", b"x-session-ms"), ("vendor", b"x-vendor-ms"))
TOTAL = b"x-total-ms"


class _Phase:
    """One block; a generator would cost several times as much, three times a call."""

    __slots__ = ("_entered", "_name", "_seconds")

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds, self._name = seconds, name

    def __enter__(self) -> None:
        self._entered = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds[self._name] = self._seconds.get(self._name, 0.0) + perf_counter() - self._entered


class Timing:
    """Phases add up when they are entered again (a retry); a phase never reached is 0. Spec: §4.14 · D102"""

    __slots__ = ("_seconds", "_started")

    def __init__(self) -> None:
        self._started = perf_counter()
        self._seconds: dict[str, float] = {}

    def phase(self, name: str) -> _Phase:
        """`with phase(...)`: count the time inside the block as `name`: auth, session or vendor."""
        return _Phase(self._seconds, name)

    def add(self, part: Timing) -> None:
        """Count the phases of a part, such as one call of a batch, that has a timing of its own."""
        for name, seconds in part._seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def ms(self, name: str) -> int:
        """Whole milliseconds of one phase."""
        return round(self._seconds.get(name, 0.0) * 1000)

    def total_ms(self) -> int:
        """Whole milliseconds since the request arrived."""
        return round((perf_counter() - self._started) * 1000)

    def headers_so_far(self) -> list[tuple[bytes, bytes]]:
        """Those of the timing headers that are final while the vendor still works."""
        return [(header, b"%d" % self.ms(name)) for name, header in HEADERS if name != "vendor"]

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The four timing headers, as they go over the wire."""
        found = [(header, b"%d" % self.ms(name)) for name, header in HEADERS]
        found.append((TOTAL, b"%d" % self.total_ms()))
        return found
