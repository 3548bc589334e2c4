"""Pure: how long a session of PostgreSQL may take over a statement, a lock, or an open transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The key of an entry of DATABASES that holds the `options` of DATABASE_URL's query. Django does not read it.
GIVEN_OPTIONS = "GIVEN_OPTIONS"
# The key that says that a pooler in transaction mode stands before the server.
HAS_POOLER = "HAS_POOLER"


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """In seconds. The server ends what takes longer; `answer_s` is when we stop waiting for a server that is silent."""

    statement_s: int
    lock_s: int
    idle_in_transaction_s: int

    @property
    def answer_s(self) -> float:
        """A quarter longer than a statement may take: a server that lives has answered by then."""
        return self.statement_s * 1.25

    def as_options(self) -> str:
        """Shaped as libpq's parameter `options`."""
        return (
            f"-c statement_timeout={self.statement_s * 1000} -c lock_timeout={self.lock_s * 1000}"
            f" -c idle_in_transaction_session_timeout={self.idle_in_transaction_s * 1000}"
        )


def with_timeouts(entry: Mapping[str, Any], timeouts: SessionTimeouts) -> dict[str, Any]:
    """A copy of an entry of DATABASES whose sessions have these timeouts.

    The options of DATABASE_URL come behind ours: of two values for one setting the server takes the last. Behind a
    pooler in transaction mode a session is shared, and a pooler refuses settings it cannot keep: there the role has
    them (ALTER ROLE ... SET).
    """
    given = entry.get(GIVEN_OPTIONS, "")
    ours = "" if entry.get(HAS_POOLER) else timeouts.as_options()
    options = {name: value for name, value in entry["OPTIONS"].items() if name != "options"}
    if joined := " ".join(part for part in (ours, given) if part):
        options["options"] = joined
    return {**entry, "OPTIONS": options}
