"""Tests that `make test` and `make e2e` leave out unless TEST_LONG=1: shorter ones cover part of what they show.

Each takes half a minute or more, or repeats with other values what a shorter one has shown. docs/decisions/0022
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

WITH_LONG = os.environ.get("TEST_LONG") == "1"
TESTS = Path(__file__).resolve().parent
ALL: frozenset[str] = frozenset()
# By file: the names of tests, ALL for each.
FILES: dict[str, frozenset[str]] = {
    "api/pages/test_page_weight.py": frozenset({"test_no_other_page_asks_for_alerts_or_mail"}),
    "api/proxy/hostile/test_faults.py": frozenset({"test_both_routes_say_what_is_wrong"}),
    "api/web/test_migrate_command.py": ALL,
    "browser/test_access_pages.py": frozenset({"test_every_page_is_accessible"}),
    "browser/test_billing_pages.py": frozenset({"test_every_page_of_a_plan_in_trouble_is_accessible_and_fits"}),
    "browser/test_documents.py": frozenset({"test_documents_are_accessible_in_every_view"}),
    "browser/test_first_calls.py": frozenset({"test_the_pages_are_well_made"}),
    "browser/test_log_pages.py": frozenset({"test_every_page_is_accessible"}),
    "browser/test_people_pages.py": frozenset(
        {"test_every_page_is_accessible", "test_every_page_with_people_is_accessible_and_fits"}
    ),
    "browser/test_every_page.py": frozenset({"test_every_page_without_a_thing_is_accessible"}),
    "browser/test_pages.py": frozenset(
        {
            "test_badges_keep_their_words_whole",
            "test_every_page_is_accessible",
            "test_what_the_documentation_and_an_account_show_fits_on_a_small_screen",
        }
    ),
    "browser/test_shipping_pages.py": frozenset({"test_every_page_is_accessible_and_fits"}),
    "browser/test_support_pages.py": frozenset({"test_the_console_is_accessible"}),
    "contracts/test_backstop.py": frozenset(
        {"test_a_stranger_is_counted_on_each_of_them", "test_a_signed_in_person_is_counted_on_each_of_them"}
    ),
    "contracts/test_generated_requests.py": ALL,
    "contracts/test_squashed_migrations.py": ALL,
    "e2e/test_api_clients.py": frozenset({"test_the_generated_python_client"}),
    "e2e/test_billing_life.py": frozenset({"test_half_of_the_events_are_lost"}),
    "e2e/test_make_run.py": frozenset(
        {"test_make_itself_passes_its_signal_on", "test_without_the_demo_nothing_of_it_is_there"}
    ),
    "e2e/test_postgresql_variants.py": ALL,
    "e2e/test_redis_variants.py": ALL,
    "e2e/test_stripe_mode.py": ALL,
    "e2e/test_tests_of_stripe_mode.py": ALL,
    "e2e/test_vendor_sign_in_conformance.py": ALL,
    "faults/test_database_silent.py": ALL,
    "faults/test_matrix.py": ALL,
    "faults/test_followed_stream.py": ALL,
    "faults/test_redis_hangs.py": ALL,
    "faults/test_rolled.py": ALL,
    "faults/test_rotated_keys.py": ALL,
    "faults/test_upgraded_beside.py": ALL,
    "faults/test_upgraded_log.py": ALL,
    "unit/test_image_inventory.py": frozenset({"test_the_probe_sees_this_computer"}),
}
# Of tests with many variants each n-th stays: variants next to each other differ least.
VARIANTS: dict[tuple[str, str], int] = {
    ("api/audit/shipping/test_platforms.py", "test_after_a_fault_the_records_arrive"): 4,
    ("api/proxy/hostile/test_faults.py", "test_memory_is_bounded"): 3,
    ("api/proxy/hostile/test_faults.py", "test_the_monitor_sees_the_same_vendor"): 3,
    ("contracts/test_bodies.py", "test_no_route_takes_what_is_no_json_object"): 4,
    ("e2e/test_billing_life.py", "test_events_in_any_order_and_twice"): 3,
    ("e2e/test_real_vendors.py", "test_a_vendor_is_listed_and_called_and_may_die"): 2,
}
# Of each attack the first of its variants stays; `make attacks` runs all.
ATTACKS = "attacks/test_attacks.py"


def mark(items: list[pytest.Item]) -> None:
    """Give tests the mark that scripts/test.py chooses by."""
    attacks: set[str] = set()
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        place = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        name, names = getattr(item, "originalname", item.name), FILES.get(place)
        is_long = names is not None and (not names or name in names)
        if step := VARIANTS.get((place, name)):
            is_long = seen[place, name] % step > 0
            seen[place, name] += 1
        if place == ATTACKS:
            number = item.name.partition("[")[2].partition(" ")[0]
            is_long = number in attacks
            attacks.add(number)
        if is_long:
            item.add_marker(pytest.mark.long)
