"""Pure: what usage tells calls apart by, and what it sums. Spec: §2 Usage aggregates · D150"""

from __future__ import annotations

from enum import StrEnum

from audit.call_status import CallStatus

WHOLE_DAY = 24  # instead of an hour
RATE_LIMITED = "rate_limited"  # the error code of a call above its limit


class Outcome(StrEnum):
    """The status of a call; calls above their limit are told from other refusals. Spec: D150"""

    SUCCESS = CallStatus.SUCCESS.value
    ERROR = CallStatus.ERROR.value
    UNKNOWN = CallStatus.UNKNOWN.value
    DENIED = CallStatus.DENIED.value
    RATE_LIMITED = RATE_LIMITED


# Spec: D150
COUNTED = (Outcome.SUCCESS, Outcome.ERROR, Outcome.UNKNOWN)  # a call in usage
TIMED = (Outcome.SUCCESS, Outcome.ERROR)  # has a duration that counts

# Columns of the counters. One row of a table has one value of its key.
COUNT_KEY = ("org_id", "day", "hour", "vendor", "tool", "user_id", "source", "outcome")
DURATION_KEY = ("org_id", "day", "hour", "vendor", "bucket")
SUMS = ("calls", "duration_ms", "vendor_ms", "request_bytes", "response_bytes")
