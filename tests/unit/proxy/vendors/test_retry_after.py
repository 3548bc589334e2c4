"""Values of vendors' Retry-After: seconds, a date in each of its forms, and anything else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.vendors.retry_after import parse_retry_after

NOW = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("007", 7),
        ("86401", 86_400),
        ("999999999", 86_400),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 09:50:37 +0100", 60),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Sat, 05 Nov 1994 08:49:37 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
    ],
)
def test_what_is_understood(written: str, seconds: int) -> None:
    assert parse_retry_after(written, now=NOW) == seconds


def test_a_part_of_a_second_is_waited_for() -> None:
    now = NOW.replace(microsecond=1)
    assert parse_retry_after("Sun, 06 Nov 1994 08:49:39 GMT", now=now) == 2


@pytest.mark.parametrize(
    "written",
    [
        None,
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1_0",
        "٧",
        "1" * 10,
        "1" * 5000,
        "soon",
        "Sun, 06 Nov 1994",
        "Sun, 32 Nov 1994 08:50:37 GMT",
        "Sun, 06 Nov 1994 25:50:37 GMT",
        "Sun, 06 Nov 99999999999 08:50:37 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Sun, 06 Nov 1994 08:50:37 +99999999999",
        f"Sun, 06 Nov 1994 08:50:37 GMT{' ' * 40}",
    ],
)
def test_what_is_not(written: str | None) -> None:
    assert parse_retry_after(written, now=NOW) is None


@given(st.text(max_size=45) | st.text("SunJa6 0:9,-+1GMT", max_size=40))
def test_whatever_comes_does_no_harm(written: str) -> None:
    found = parse_retry_after(written, now=NOW)
    assert found is None or 0 <= found <= 86_400
