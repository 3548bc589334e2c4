"""Pure: what usage tells calls apart by, and what it sums. Spec: §2 Usage aggregates · D150"""

from __future__ import annotations

import uuid
from datetime import date
from enum import StrEnum
from typing import NamedTuple

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


class CountKey(NamedTuple):
    org_id: uuid.UUID
    day: date
    hour: int
    vendor: str
    tool: str
    user_id: str
    source: str
    outcome: str


class DurationKey(NamedTuple):
    org_id: uuid.UUID
    day: date
    hour: int
    vendor: str
    bucket: int


class Sums(NamedTuple):
    calls: int
    duration_ms: int
    vendor_ms: int
    request_bytes: int
    response_bytes: int

    def plus(self, other: Sums) -> Sums:
        return Sums(*map(int.__add__, self, other))


NOTHING = Sums(0, 0, 0, 0, 0)


def outcome_of(status: str, error_code: str) -> Outcome:
    if status == CallStatus.DENIED and error_code == RATE_LIMITED:
        return Outcome.RATE_LIMITED
    return Outcome(status)
