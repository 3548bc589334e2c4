"""Pure: time spent in each phase of a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType

AUTH, SESSION, VENDOR, TOTAL = b"x-auth-ms", b"x-session-ms", b"x-vendor-ms", b"x-total-ms"


class Phase:
    """`with phase:` adds the block's time. It may be entered again (a retry), but not within itself."""

    __slots__ = ("_entered", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._entered = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += perf_counter() - self._entered

    @property
    def ms(self) -> int:
        # Whole milliseconds.
        return round(self.seconds * 1000)


class Timing:
    """Three phases in seconds. Spec: §4.14 · D102

    `auth`: authentication, admission, decision, opening the credential. `session`: a tool list that is fetched, the
    place at the vendor, the session, the connection. `vendor`: the exchange with the vendor.
    """

    __slots__ = ("_started", "auth", "session", "vendor")

    def __init__(self) -> None:
        self._started = perf_counter()
        self.auth, self.session, self.vendor = Phase(), Phase(), Phase()

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

    def add(self, part: Timing) -> None:
        """Add the phases of a part with its own timing, such as one call of a batch."""
        self.auth.seconds += part.auth.seconds
        self.session.seconds += part.session.seconds
        self.vendor.seconds += part.vendor.seconds

    def total_ms(self) -> int:
        return round((perf_counter() - self._started) * 1000)

    def headers_so_far(self) -> list[tuple[bytes, bytes]]:
        """Timing headers that are final before the vendor answers."""
        return [(AUTH, b"%d" % self.auth.ms), (SESSION, b"%d" % self.session.ms)]

    def headers(self) -> list[tuple[bytes, bytes]]:
        vendor_and_total = [(VENDOR, b"%d" % self.vendor.ms), (TOTAL, b"%d" % self.total_ms())]
        return self.headers_so_far() + vendor_and_total
