"""A lapsed organization is refused exactly where a gate names the plan, on pages and over the API."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from oauth_ext.services.service_clients import create_service_client
from orgs.services.teams import create_team
from tests.contracts.test_gates import gated_addresses
from tests.contracts.test_routes import NEEDS_PLAN
from tests.contracts.url_walk import Address, addresses
from tests.factories.cast import Cast
from tests.factories.catalog import load_vendors


def needs_plan(gate: Gate) -> bool:
    return gate.plan is not None or gate.entitlement is not None


def page_addresses() -> list[Address]:
    return [
        each
        for each in addresses()
        if isinstance(each.view, type) and issubclass(each.view, OrgPage) and "GET" in each.view.gates
    ]


def test_the_table_of_the_specification_is_what_the_gates_say() -> None:
    """Its rows are tried for a lapsed organization in test_routes: 402 for these, and for no other."""
    marked = {
        (method, address.template)
        for address in gated_addresses()
        for method, gate in address.view.gates.items()
        if needs_plan(gate)
    }
    assert marked == NEEDS_PLAN


class Values(dict[str, Any]):
    """For each variable of a path something that its converter takes."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(org_id=cast.org.id, user_id=cast.user("member").id, vendor="acme", slug="acme")

        self._cast = cast

    def __missing__(self, name: str) -> object:
        if name == "client_id":
            owner, organization = self._cast.user("owner"), self._cast.org
            return create_service_client(actor=owner, organization=organization, name="bot").client.client_id
        if name == "team_id":
            return create_team(actor=self._cast.user("owner"), organization=self._cast.org, name="Night shift").id
        return uuid.uuid4()


def test_there_are_pages_of_both_kinds() -> None:
    kinds = [needs_plan(address.view.gates["GET"]) for address in page_addresses()]
    assert kinds.count(True) > 3
    assert kinds.count(False) > 10


@pytest.mark.usefixtures("lapsed")
@pytest.mark.parametrize("address", page_addresses(), ids=lambda address: address.route)
def test_a_page_of_a_lapsed_organization(cast: Cast, address: Address) -> None:
    load_vendors("acme")
    answer = cast.client("owner").get(address.template.format_map(Values(cast)))
    assert (answer.status_code == 402) == needs_plan(address.view.gates["GET"])
