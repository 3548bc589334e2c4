"""The short form of two reports: bodies of strangers, and absurd bodies of a member."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import deployment
from tests.faults.absurd_bodies import bodies
from tests.faults.attacked_gateway import Attacked, attacked
from tests.faults.unauthenticated_bodies import BEARERS, flood

pytest_plugins = ("tests.vendors.fixtures", "tests.e2e.fixtures")

CONNECTIONS = 60
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def target(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A gateway of this module's own."""
    with deployment(template, tmp_path_factory.mktemp("attacked") / "var") as made, attacked(made) as target:
        yield target


@pytest.mark.parametrize("bearer", BEARERS.values(), ids=BEARERS.keys())
async def test_bodies_of_strangers_are_not_kept(target: Attacked, bearer: str | None) -> None:
    done = await flood(target, CONNECTIONS, bearer, stays_s=1.0)
    assert done.faults() == []
    assert done.growth_bytes < CONNECTIONS * MIB / 2, "a tenth of what was sent"


async def test_absurd_bodies_are_refused_and_others_are_answered(target: Attacked) -> None:
    seen, answered = await bodies(target, senders=2, size_bytes=4 * MIB, lasts_s=1.0)
    assert answered > 0
    assert seen.lost == 0
    assert set(seen.statuses) == {200}
