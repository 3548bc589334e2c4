"""Memory from the sizes of a process, and the sizes that a large run raises."""

from __future__ import annotations

import math

from bench.wide.parts import memory_of
from bench.wide.results import UNKNOWN_CALLER, UNKNOWN_LIST, UNKNOWN_ORGANIZATION
from bench.wide.seeding import batches, catalog_of
from bench.wide.sizes import Sizes
from bench.wide.stage import raised_sizes
from tests.factories.catalog_text import parse_catalog

COUNTS = {UNKNOWN_ORGANIZATION: 500, UNKNOWN_CALLER: 4000, UNKNOWN_LIST: 2000}


def test_memory_is_the_difference_of_sizes_over_the_difference_of_counts() -> None:
    found = memory_of([90, 1_000_000, 6_000_000, 14_000_000, 20_000_000], COUNTS)
    assert (found.before, found.after) == (90, 20_000_000)
    assert (found.caller, found.tool_list) == (2000, 3000)
    # An organization came with a caller and a list: 10,000 bytes together.
    assert found.organization == 5000


def test_few_of_a_kind_say_nothing() -> None:
    found = memory_of([90, 1000, 2000, 3000, 4000], {**COUNTS, UNKNOWN_LIST: 0})
    assert math.isnan(found.tool_list)
    assert math.isnan(found.organization)
    assert not math.isnan(found.caller)


def test_sizes_are_raised_for_data_that_exceed_them() -> None:
    assert raised_sizes(Sizes(4_000, 10, 3)) == {}
    assert raised_sizes(Sizes(10_000, 5, 3)) == {"CACHED_DATA_KEYS": "10000", "VENDOR_SESSIONS_AWAKE": "30000"}
    assert raised_sizes(Sizes(20_000, 5, 3)) == {
        "CACHED_CALLERS": "100000",
        "CACHED_ORGANIZATIONS": "20000",
        "CACHED_DATA_KEYS": "20000",
        "VENDOR_SESSIONS": "60000",
        "VENDOR_SESSIONS_AWAKE": "60000",
        "TOOL_INDEXES": "60000",
    }


def test_batches_cover_everything_once() -> None:
    assert [list(each) for each in batches(5, 2)] == [[0, 1], [2, 3], [4]]


def test_the_catalog_has_every_vendor_at_an_address_of_its_own() -> None:
    vendors = parse_catalog(catalog_of("http://127.0.0.1:9/mcp", 3))
    assert {vendor.slug: vendor.url for vendor in vendors} == {
        f"wide-{number}": f"http://127.0.0.1:9/mcp/{number}" for number in range(3)
    }
