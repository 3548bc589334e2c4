"""Inputs that nobody thought of, through the whole service: no 5xx, no hang, no growth, every refusal as documented.

A few hundred inputs, the same in each run. `make fuzz INPUTS=180000` sends others, and as many.
"""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import suppress

import pytest

from gateway.lib.errors import DomainError
from tests.api.oauth_ext.flow import make_flow
from tests.attacks.things import things
from tests.attacks.world import World
from tests.factories.tenant import make_tenant
from tests.fuzz.fragments import Chance, draw_all_pools
from tests.fuzz.requests import Maker
from tests.fuzz.run import run

INPUTS = int(os.environ.get("FUZZ_INPUTS") or 600)
SEED = int(os.environ.get("FUZZ_SEED") or 1)
GROWTH_MIB = 16.0  # of this process, tests and service together, in the second half, whatever the number of inputs
LONG = 5_000
HANG_S = 60.0


@pytest.mark.usefixtures("_unlimited")
def test_every_answer_is_documented(world: World) -> None:
    numbers = itertools.count()
    flow = make_flow(world.cast)
    world.vendor.api_key = None  # credentials are replaced by others as the run goes
    pair, token = flow.tokens(), world.token()

    ids: dict[str, str] = {}

    def make() -> Maker:
        number = next(numbers)
        world.forget_sessions()  # they end with the confirmation of the person behind them
        world.vendor.forget_requests()
        with suppress(DomainError):  # things of the last inputs may be in the way
            ids.update(things(world, f"{number}"))
        # The one that is renamed, restricted and deleted is not the one that calls.
        doomed = make_tenant(world.cast.org, world.cast.user("owner"), name=f"bot {number}").client.client_id
        ids["client_id"] = doomed
        return Maker(world, Chance(SEED + number), ids, token, pair, flow.client.client_id)

    def note(line: str) -> None:
        if INPUTS > LONG:
            sys.stderr.write(f"{line}\n")

    if INPUTS > LONG:
        draw_all_pools()
    figures = run(world, make, INPUTS, note)
    report = "\n".join(figures.lines())
    if path := os.environ.get("FUZZ_REPORT"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{report}\n")
    assert not figures.wrong, report
    assert figures.slowest_s < HANG_S, report
    assert figures.grown_mib < GROWTH_MIB, report
    assert len({status for _, status in figures.counts}) > 6, report
