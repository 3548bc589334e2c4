from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.call_record import MAX_INTEGER
from audit.usage.durations import LOWEST, bucket_of, middle_of, percentile

durations = st.integers(0, MAX_INTEGER) | st.integers(0, 60_000)


@given(duration_ms=durations)
def test_the_middle_of_a_bucket_is_less_than_five_percent_away(duration_ms: int) -> None:
    assert abs(middle_of(bucket_of(duration_ms)) - duration_ms) < 0.05 * max(duration_ms, 1)


def test_short_durations_are_exact_and_every_duration_has_a_bucket() -> None:
    assert [middle_of(bucket_of(duration_ms)) for duration_ms in range(20)] == list(range(20))
    assert bucket_of(MAX_INTEGER) == len(LOWEST) - 1
    assert len(LOWEST) < 2**15, "a small integer holds it"


def test_buckets_stay_what_the_stored_ones_mean() -> None:
    assert [bucket_of(duration_ms) for duration_ms in (25, 100, 1_000, 60_000, 300_000)] == [22, 38, 63, 106, 123]


@given(found=st.lists(durations, min_size=1), share=st.sampled_from([0.5, 0.95, 1.0]))
def test_a_percentile_is_less_than_five_percent_away_from_the_exact_one(found: list[int], share: float) -> None:
    calls: dict[int, int] = {}
    for duration_ms in found:
        calls[bucket_of(duration_ms)] = calls.get(bucket_of(duration_ms), 0) + 1
    exact = sorted(found)[math.ceil(share * len(found)) - 1]
    assert percentile(calls, share) == pytest.approx(exact, rel=0.05)


def test_no_calls_have_no_percentile() -> None:
    assert percentile({}, 0.95) == 0
    assert percentile({0: 0}, 0.5) == 0
