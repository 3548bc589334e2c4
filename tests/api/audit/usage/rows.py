"""Final rows of the request log for the tests of usage, and what the roll-ups of them must be, counted naively."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from hypothesis import strategies as st
from msgspec.structs import asdict

from audit.models import RequestAuditEntry, UsageCount, UsageDuration, UsageLabel
from audit.usage.durations import bucket_of
from audit.usage_keys import WHOLE_DAY
from gateway.lib import ids
from tests.api.audit.rows import NOON, ORG, OTHER_ORG, make_record

_positions = itertools.count(1)  # below those of real transactions, so that they can be read at once


def log_row(at: datetime = NOON, *, position: int | None = 0, count: int = 1, **changes: Any) -> RequestAuditEntry:
    """A row that is not stored. `position` 0: final, behind all others; None: not final."""
    log_id = ids.log_id_at(ids.first_log_id_at(at).int >> 80, os.urandom(10))
    facts = asdict(make_record(id=log_id, timestamp=at, **changes))
    return RequestAuditEntry(**facts, count=count, position=next(_positions) if position == 0 else position)


def next_position() -> int:
    return next(_positions)


def store(*rows: RequestAuditEntry) -> None:
    RequestAuditEntry.objects.bulk_create(rows)


@contextmanager
def undone() -> Any:
    """A transaction that is rolled back: one example of a property."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


EVENING = NOON.replace(day=9, hour=21)
# Two organizations, hours on both sides of midnight, and few values of each kind, so that rows share keys.
calls = st.fixed_dictionaries(
    {
        "at": st.integers(0, 30 * 3_600_000).map(lambda ms: EVENING + timedelta(milliseconds=ms)),
        "final_after": st.integers(0, 600),
        "org_id": st.sampled_from([ORG, OTHER_ORG]),
        "user_id": st.sampled_from(["user-1", "user-2", f"svc:{ORG}:bot"]),
        "user_label": st.sampled_from(["Ana", "Bo", "Ana Lee"]),
        "vendor": st.sampled_from(["acme", "globex", ""]),
        "tool": st.sampled_from(["a", "b", "c", "d", "e", "f", "g"]),
        "source": st.sampled_from(["mcp", "cli"]),
        "outcome": st.sampled_from(
            [
                *[("success", ""), ("error", "tool_error"), ("error", "rate_limited")],
                *[("denied", "forbidden"), ("denied", "rate_limited"), ("unknown", "")],
            ]
        ),
        "duration_ms": st.integers(0, 400_000) | st.just(2**31 - 1),
        "vendor_ms": st.integers(0, 1_000),
        "request_bytes": st.integers(0, 1_000),
        "response_bytes": st.integers(0, 100_000),
    }
)


def rows_of(facts: Iterable[dict[str, Any]]) -> list[RequestAuditEntry]:
    """Final rows in the order of the stream, which is that of the moments at which they became final.

    Rate-limited ones stand for three calls.
    """
    found = []
    for each in sorted(facts, key=lambda each: each["at"] + timedelta(seconds=each["final_after"])):
        status, code = each["outcome"]
        plain = {name: value for name, value in each.items() if name not in {"outcome", "final_after"}}
        found.append(
            log_row(
                **plain, status=status, error_code=code, count=3 if each["outcome"] == ("denied", "rate_limited") else 1
            )
        )
    return found


def outcome(row: RequestAuditEntry) -> str:
    """As the decision has it."""
    return "rate_limited" if (row.status, row.error_code) == ("denied", "rate_limited") else row.status


def expected(rows: Iterable[RequestAuditEntry]) -> tuple[Counter[Any], Counter[Any], dict[Any, str]]:
    """Naively: sums by key and name, calls by bucket, labels."""
    sums: Counter[Any] = Counter()
    buckets: Counter[Any] = Counter()
    labels = {}
    for row in sorted(rows, key=lambda row: row.id):
        labels[row.org_id, row.user_id] = row.user_label
        for hour in (row.timestamp.hour, WHOLE_DAY):
            when = (row.org_id, row.timestamp.date(), hour)
            tool = "" if row.status == "denied" else row.tool
            key = (*when, row.vendor, tool, row.user_id, row.source, outcome(row))
            sums[*key, "calls"] += row.count
            for name in ("duration_ms", "vendor_ms", "request_bytes", "response_bytes"):
                sums[*key, name] += getattr(row, name)
            if row.status in {"success", "error"}:
                buckets[*when, row.vendor, bucket_of(row.duration_ms)] += row.count
    return +sums, buckets, labels


def stored() -> tuple[Counter[Any], Counter[Any], dict[Any, str]]:
    """The same, as the tables have it."""
    sums: Counter[Any] = Counter()
    for row in UsageCount.objects.all():
        key = (row.org_id, row.day, row.hour, row.vendor, row.tool, row.user_id, row.source, row.outcome)
        for name in ("calls", "duration_ms", "vendor_ms", "request_bytes", "response_bytes"):
            assert (*key, name) not in sums, "one row for each key"
            sums[*key, name] = getattr(row, name)
    buckets = Counter(
        {(row.org_id, row.day, row.hour, row.vendor, row.bucket): row.calls for row in UsageDuration.objects.all()}
    )
    return +sums, buckets, {(row.org_id, row.user_id): row.label for row in UsageLabel.objects.all()}
