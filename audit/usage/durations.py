"""Pure: durations in milliseconds by bucket, and percentiles of a histogram.

Buckets are spaced like a logarithm: exact below 20 ms, above that never wider than a tenth of their lowest duration. So
the middle of a bucket is less than 5 % away from every duration in it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from audit.call_record import MAX_INTEGER

_WIDTH = 10  # a bucket is as wide as a tenth of its lowest duration, and at least 1 ms


def _lowest_durations() -> Iterator[int]:
    lowest = 0
    while lowest <= MAX_INTEGER:
        yield lowest
        lowest += max(lowest // _WIDTH, 1)


# The lowest duration of each bucket. A change would give the stored buckets another meaning.
LOWEST = tuple(_lowest_durations())


def bucket_of(duration_ms: int) -> int:
    return bisect_right(LOWEST, duration_ms) - 1


def middle_of(bucket: int) -> int:
    """Returns milliseconds."""
    lowest = LOWEST[bucket]
    return lowest + (max(lowest // _WIDTH, 1) - 1) // 2


def percentile(calls_by_bucket: Mapping[int, int], share: float) -> int:
    """Returns the middle of the bucket of the call at rank ceil(share x calls), in milliseconds; 0 without calls."""
    rank = math.ceil(share * sum(calls_by_bucket.values()))
    for bucket, calls in sorted(calls_by_bucket.items()):
        rank -= calls
        if rank <= 0:
            return middle_of(bucket)
    return 0
