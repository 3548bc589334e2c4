"""Pure: options of a PostgreSQL session: timeouts of statements, locks and open transactions.   docs/decisions/0015"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Keys of an entry of DATABASES that Django does not read: `options` of DATABASE_URL's query, and whether a pooler in
# transaction mode stands before the server.
GIVEN_OPTIONS = "GIVEN_OPTIONS"
HAS_POOLER = "HAS_POOLER"
# The planner overestimates large partitioned tables, and then compiles each statement for about a second: several times
# longer than any of them runs.
_NO_COMPILATION = "-c jit=off"


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """In seconds. The server enforces them; `response_timeout_s` is this side's timeout for a silent server."""

    statement_s: int
    lock_s: int
    idle_in_transaction_s: int

    @property
    def response_timeout_s(self) -> float:
        # A quarter longer than a statement may take: a server that lives has answered by then.
        return self.statement_s * 1.25

    def as_options(self) -> str:
        return (
            f"-c statement_timeout={self.statement_s * 1000} -c lock_timeout={self.lock_s * 1000}"
            f" -c idle_in_transaction_session_timeout={self.idle_in_transaction_s * 1000}"
        )


def with_timeouts(entry: Mapping[str, Any], timeouts: SessionTimeouts) -> dict[str, Any]:
    # The operator's options come last: of two values for a setting the server takes the last. Behind a pooler in
    # transaction mode sessions are shared and such settings refused: there the role has them (ALTER ROLE ... SET).
    given = entry.get(GIVEN_OPTIONS, "")
    ours = "" if entry.get(HAS_POOLER) else f"{timeouts.as_options()} {_NO_COMPILATION}"
    options = {name: value for name, value in entry["OPTIONS"].items() if name != "options"}
    if joined := " ".join(part for part in (ours, given) if part):
        options["options"] = joined
    return {**entry, "OPTIONS": options}
