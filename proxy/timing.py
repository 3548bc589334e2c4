"""Pure: time spent in each phase of a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType

AUTH, SESSION, VENDOR, TOTAL = b"x-auth-ms", b"x-session-ms", b"x-vendor-ms", b"x-total-ms"


class Phase:
    """`with phase:` adds the block's time. It may be entered again (a retry), but not within itself."""

    __slots__ = ("_entered", "began_s", "seconds")

    def __init__(self) -> None:
        self.seconds = self.began_s = 0.0  # `began_s`: of `perf_counter`, when it was first entered

    def __enter__(self) -> None:
        self._entered = entered_s = perf_counter()
        if not self.began_s:
            self.began_s = entered_s

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += perf_counter() - self._entered

    @property
    def ms(self) -> int:
        # Whole milliseconds.
        return round(self.seconds * 1000)


class Timing:
    """The phases of a request in seconds. Headers show the first three and the total. Spec: §4.14 · D102

    `auth`: authentication, admission, decision, opening the credential. `session`: a tool list that is fetched, the
    place at the vendor, the session, the connection. `vendor`: the exchange with the vendor. `audit_s`: the commits of
    the call's records, in seconds.
    """

    __slots__ = ("_started", "audit_began_s", "audit_s", "auth", "session", "vendor")

    def __init__(self) -> None:
        self._started = perf_counter()
        self.auth, self.session, self.vendor = Phase(), Phase(), Phase()
        self.audit_s = self.audit_began_s = 0.0

    @contextmanager
    def queue_wait(self) -> Iterator[None]:
        """`with timing.queue_wait():` inside `vendor` counts the block as `session`. Spec: D144"""
        entered = perf_counter()
        try:
            yield
        finally:
            waited_s = perf_counter() - entered
            self.session.seconds += waited_s
            self.vendor.seconds -= waited_s

    @contextmanager
    def caller_wait(self) -> Iterator[None]:
        """`with timing.caller_wait():` inside `vendor` does not count the block: the vendor waits for its caller."""
        entered = perf_counter()
        try:
            yield
        finally:
            self.vendor.seconds -= perf_counter() - entered

    def add(self, part: Timing) -> None:
        """Add the phases of a part with its own timing, such as one call of a batch."""
        for own, other in ((self.auth, part.auth), (self.session, part.session), (self.vendor, part.vendor)):
            own.seconds += other.seconds
            own.began_s = own.began_s or other.began_s
        self.audit_s += part.audit_s
        self.audit_began_s = self.audit_began_s or part.audit_began_s

    def note_audit(self, began_s: float) -> float:
        """A commit that began then has ended. Returns its seconds."""
        seconds = perf_counter() - began_s
        self.audit_s += seconds
        if not self.audit_began_s:
            self.audit_began_s = began_s
        return seconds

    def phases(self) -> list[tuple[str, float, float]]:
        """Name, beginning by `perf_counter` and seconds of each phase that happened."""
        named = (("auth", self.auth), ("session", self.session), ("vendor", self.vendor))
        found = [(name, phase.began_s, phase.seconds) for name, phase in named]
        return [phase for phase in (*found, ("audit", self.audit_began_s, self.audit_s)) if phase[1]]

    def total_s(self) -> float:
        return perf_counter() - self._started

    def total_ms(self) -> int:
        return round((perf_counter() - self._started) * 1000)

    def headers_so_far(self) -> list[tuple[bytes, bytes]]:
        """Timing headers that are final before the vendor answers."""
        return [(AUTH, b"%d" % self.auth.ms), (SESSION, b"%d" % self.session.ms)]

    def headers(self) -> list[tuple[bytes, bytes]]:
        vendor_and_total = [(VENDOR, b"%d" % self.vendor.ms), (TOTAL, b"%d" % self.total_ms())]
        return self.headers_so_far() + vendor_and_total
