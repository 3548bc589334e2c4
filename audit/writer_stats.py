"""The figures of an audit writer since its process started."""

from __future__ import annotations

from dataclasses import dataclass, replace

from audit.loop_committer import CommitterStats


@dataclass(frozen=True, slots=True)
class WriterStats:
    batches: int = 0
    rows: int = 0
    largest_batch: int = 0
    last_commit_ms: float = 0.0  # the database's time
    refused: int = 0  # queue full, deadline passed, or record not storable
    faults: int = 0  # closed connections
    pending: int = 0

    def with_committer(self, committer: CommitterStats, *, is_open: bool) -> WriterStats:
        """Adds the loop committer's figures. The last commit is the loop committer's while it `is_open`."""
        return replace(
            self,
            batches=self.batches + committer.batches,
            rows=self.rows + committer.rows,
            largest_batch=max(self.largest_batch, committer.largest_batch),
            last_commit_ms=committer.last_commit_ms if is_open and committer.batches else self.last_commit_ms,
            faults=self.faults + committer.faults,
        )
