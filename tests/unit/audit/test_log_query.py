"""The part of a log that a query string asks for. Spec: D79, D84"""

from __future__ import annotations

import pytest

from audit.log_query import LogQuery, NarrowTheRange
from gateway.lib.errors import Invalid


def refused_fields(query: dict[str, str]) -> set[str]:
    with pytest.raises(Invalid) as refusal:
        LogQuery.parse(query)
    return set(refusal.value.fields)


def test_nothing_asked_is_the_first_page() -> None:
    query = LogQuery.parse({})
    assert query == LogQuery(limit=None, offset=0, cursor=None, is_csv=False)
    assert (query.page_limit, query.export_limit) == (50, 1_000_000)


@pytest.mark.parametrize(
    ("raw", "page", "export"),
    [
        ("1", 1, 1),
        ("0500", 500, 500),
        ("501", 500, 501),
        ("1e9", 500, 1_000_000),
        ("2E3", 500, 2_000),
        ("9" * 5_000, 500, 1_000_000),
        ("0" * 5_000 + "7", 7, 7),
        (" 7 ", 7, 7),
    ],
)
def test_limits_are_clamped_for_each_format(raw: str, page: int, export: int) -> None:
    query = LogQuery.parse({"limit": raw})
    assert (query.page_limit, query.export_limit) == (page, export)


@pytest.mark.parametrize("raw", ["0", "-1", "+1", "1.5", "1e", "e9", "1e-1", "1e999", "1_000", "0x10", "٣", "²", "1 0"])
def test_limits_that_are_no_number_from_1_are_refused(raw: str) -> None:
    assert refused_fields({"limit": raw}) == {"limit"}


def test_offsets_have_an_end() -> None:
    assert LogQuery.parse({"offset": "100000"}).offset == 100_000
    with pytest.raises(NarrowTheRange):
        LogQuery.parse({"offset": "100001"})
    assert refused_fields({"offset": "100001", "limit": "0"}) == {"limit"}


@pytest.mark.parametrize("raw", ["x", "0190F3B4-0000-7000-8000-000000000000", "{0190f3b4-0000-7000-8000-000000000000}"])
def test_cursors_are_written_as_they_were_given(raw: str) -> None:
    assert refused_fields({"cursor": raw}) == {"cursor"}


def test_all_wrong_values_are_named_at_once() -> None:
    wrong = {"limit": "x", "offset": "x", "cursor": "x", "format": "x"}
    assert refused_fields(wrong) == set(wrong)
