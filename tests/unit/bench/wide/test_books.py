"""Callers and the vendors that they call in each part of a wide run."""

from __future__ import annotations

from itertools import product

import pytest

from bench.targets import SITES
from bench.wide.books import Passes, load_book, requests_of, templates
from bench.wide.results import UNKNOWN_CALLER, UNKNOWN_LIST, UNKNOWN_ORGANIZATION
from bench.wide.sizes import Sizes, has_token, template_of

SIZES = Sizes(organizations=6, callers=3, vendors=2)
BEARERS = [f"bearer-{number}" for number in range(8 * 3)]


def test_the_parts_reach_every_caller_and_every_list_once() -> None:
    passes = Passes(SIZES)
    calls = [*passes.begin, *(call for part in passes.parts.values() for call in part)]
    assert len(calls) == len(set(calls)) == 6 * (3 + 2 - 1)
    assert {caller for caller, _ in calls} == set(range(18))
    assert {(caller // 3, vendor) for caller, vendor in calls} == set(product(range(6), range(2)))


def test_each_part_meets_one_kind_of_unknown_thing() -> None:
    passes = Passes(SIZES)
    known_callers = {caller for caller, _ in passes.begin}
    known_organizations = {caller // 3 for caller in known_callers}
    first = passes.parts[UNKNOWN_ORGANIZATION]
    assert not {caller // 3 for caller, _ in first} & known_organizations
    known_callers |= {caller for caller, _ in first}
    assert not {caller for caller, _ in passes.parts[UNKNOWN_CALLER]} & known_callers
    assert {caller for caller, _ in passes.parts[UNKNOWN_LIST]} <= known_callers
    assert {vendor for _, vendor in passes.parts[UNKNOWN_LIST]} == {1}


@pytest.mark.parametrize("sizes", [Sizes(4, 1, 1), Sizes(4, 1, 3), Sizes(4, 2, 1)])
def test_a_single_caller_or_vendor_leaves_its_part_empty(sizes: Sizes) -> None:
    parts = Passes(sizes).parts
    assert bool(parts[UNKNOWN_CALLER]) == (sizes.callers > 1)
    assert bool(parts[UNKNOWN_LIST]) == (sizes.vendors > 1)


def test_a_request_carries_the_bearer_of_its_caller_and_the_tool_of_its_vendor() -> None:
    ((request, mark),) = requests_of([(7, 1)], SIZES, BEARERS)
    head, _, body = request.partition(b"\r\n\r\n")
    assert b"Authorization: Bearer bearer-7\r\n" in head
    assert b'"wide_1_read_site"' in body
    assert f"Content-Length: {len(body)}".encode() in head
    assert mark == b"BENCH-OK site-00;"


def test_templates_stand_in_the_order_of_their_numbers() -> None:
    found = templates(2)
    assert len(found) == 2 * SITES
    assert b'"wide_1_read_site"' in found[template_of(1, 5)].tail
    assert found[template_of(1, 5)].mark == b"BENCH-OK site-05;"


def test_the_book_of_the_load_has_no_spare_caller() -> None:
    book = load_book(SIZES, BEARERS)
    assert len(book.bearers) == 18
    assert max(turn.bearer for turn in book.turns) == 17


def test_narrow_is_about_fifty_callers_and_never_more_than_there_are() -> None:
    assert Sizes(10_000, 5, 3).narrow() == Sizes(10, 5, 3)
    assert Sizes(10_000, 7, 3).narrow().all_callers == 56
    assert Sizes(2, 5, 3).narrow() == Sizes(2, 5, 3)


def test_spare_callers_have_tokens_and_come_after_all_others() -> None:
    assert [SIZES.spare_caller(number) for number in (0, 1)] == [18, 21]
    assert has_token(SIZES.spare_caller(1) % SIZES.callers)
