"""The sixty attacks, each by its number: exact answers, and nothing written but what the row says."""

from __future__ import annotations

import pytest

from tests.attacks import (
    authorization,
    calls,
    endpoints,
    entry,
    limits_and_pages,
    logs_and_payments,
    registration,
    secrets_and_keys,
    tenancy,
    tokens,
)
from tests.attacks.table import CASES, ROWS, Case
from tests.attacks.world import World

MODULES = (
    entry,
    calls,
    endpoints,
    authorization,
    tokens,
    registration,
    tenancy,
    secrets_and_keys,
    limits_and_pages,
    logs_and_payments,
)  # each enters its rows when it is imported


@pytest.mark.parametrize("case", CASES, ids=str)
def test_attack(world: World, case: Case) -> None:
    case.attempt(world)
    assert world.looks, "an attack that nobody watched"


def test_every_row_of_the_table_is_tried() -> None:
    assert {case.number for case in CASES} == set(range(1, ROWS + 1))
    assert len({str(case) for case in CASES}) == len(CASES)
    assert all(module.__doc__ for module in MODULES)
