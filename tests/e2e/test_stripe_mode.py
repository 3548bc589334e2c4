"""BILLING_MODE=stripe beside the other modes: turned on and off on one database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.deployment_data import Template
from tests.e2e.gateway_process import Deployment, deployment

pytest_plugins = ("tests.e2e.fixtures",)
MODE = {
    "BILLING_MODE": "stripe",
    "STRIPE_SECRET_KEY": "sk_test_1",
    "STRIPE_WEBHOOK_SECRET": "whsec_1",
    "STRIPE_API_BASE": "http://127.0.0.1:9",
    "STRIPE_PRICE_ID": "price_1",
}


@pytest.fixture
def made(template: Template, tmp_path: Path) -> Iterator[Deployment]:
    with deployment(template, tmp_path / "var") as found:
        yield found


def copies_of(made: Deployment) -> set[str]:
    """The tables of the provider's library."""
    return {table for table in made.database.tables() if table.startswith("djstripe_")}


def test_the_mode_is_turned_on_and_off_again_on_one_database(made: Deployment) -> None:
    before = set(made.database.tables())
    made.manage("migrate", "--no-input", **MODE)
    tables = copies_of(made)
    assert {"djstripe_customer", "djstripe_subscription", "djstripe_event"} <= tables
    assert set(made.database.tables()) == before | tables
    with made.operator(**MODE) as on, made.operator() as off:
        # Off: the tables stay and are in nobody's way.
        off.manage("migrate", "--check")
        off.run("create_organization", name="Acme")
        # On again: nothing to do. Off for good: the copies go.
        on.manage("migrate", "--check")
        on.manage("migrate", "djstripe", "zero")
    assert set(made.database.tables()) == before
