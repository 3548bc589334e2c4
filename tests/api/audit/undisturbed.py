"""The stream of the logs as if the test's database were alone on its server.

Rows are handed out below the oldest open transaction of the whole server. Those of other test processes stay open until
their tests end, and every row that is read here would have to wait for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from audit import stream_position

_THIS = "(SELECT oid FROM pg_database WHERE datname = current_database())"
# A session that writes in another database has a lock there until its transaction ends.
_ELSEWHERE = (
    "SELECT transactionid FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted"
    f" AND pid IN (SELECT pid FROM pg_locks WHERE database NOT IN (0, {_THIS}))"
)
_OLDEST_OPEN_HERE = (
    "(SELECT LEAST(MIN(id::text::bigint), pg_current_xact_id_if_assigned()::text::bigint,"
    " pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
    f" FROM pg_snapshot_xip(pg_current_snapshot()) AS open(id) WHERE id::xid NOT IN ({_ELSEWHERE}))"
)


@dataclass
class Bound:
    """`reached`: a position below which all rows could be read once, and can ever since.

    A transaction elsewhere that ends in the middle of a statement is taken for one of this database, and would take
    the bound back for a moment.
    """

    reached: int = 0

    def as_postgresql(self) -> tuple[str, tuple[object, ...]]:
        return f"GREATEST({stream_position._START} + {_OLDEST_OPEN_HERE}, %s)", (self.reached,)


bound = Bound()
