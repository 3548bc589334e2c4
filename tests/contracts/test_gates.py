"""Every method of every view of ours has a gate, and nothing else answers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.web.api_view import ApiView, OrgView
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from tests.contracts.url_walk import Address, addresses, api_addresses
from tests.factories.api import Api

METHODS = ("get", "post", "put", "patch", "delete", "trace")
# Addresses below /api that are no part of the management API, each with its own kind of authority.
NOT_GATED = {"api/schema"}


def handlers(view: Any) -> set[str]:
    return {method.upper() for method in METHODS if hasattr(view, method)}


def gated_addresses() -> list[Address]:
    return [address for address in api_addresses() if address.route not in NOT_GATED]


def api_views() -> list[type[ApiView]]:
    return [address.view for address in gated_addresses()]


def pages() -> list[type[OrgPage]]:
    return sorted(
        {each.view for each in addresses() if isinstance(each.view, type) and issubclass(each.view, OrgPage)},
        key=lambda view: view.__name__,
    )


def test_there_is_something_to_check() -> None:
    assert len(api_views()) > 25
    assert len(pages()) > 3


@pytest.mark.parametrize("view", api_views(), ids=lambda view: view.__name__)
def test_every_method_of_the_api_has_a_gate_and_a_shape(view: type[ApiView]) -> None:
    assert issubclass(view, ApiView)
    assert set(view.gates) == set(view.shapes) == handlers(view)
    assert not view.permission_classes, "authority is the gate's business"


@pytest.mark.parametrize("view", api_views(), ids=lambda view: view.__name__)
def test_gates_of_an_organization_name_a_role_and_others_none(view: type[ApiView]) -> None:
    is_of_organization = issubclass(view, OrgView)
    assert all((gate.role is not None) == is_of_organization for gate in view.gates.values())
    if not is_of_organization:
        assert not any(gate.active_plan or gate.entitlement for gate in view.gates.values())


@pytest.mark.parametrize("address", gated_addresses(), ids=lambda address: address.route)
def test_addresses_of_an_organization_are_served_by_its_views(address: Any) -> None:
    assert ("<str:org_id>" in address.route) == issubclass(address.view, OrgView)


@pytest.mark.parametrize("view", pages(), ids=lambda view: view.__name__)
def test_every_method_of_a_page_has_a_gate(view: type[OrgPage]) -> None:
    assert {name.partition(" ")[0] for name in view.gates} == handlers(view)
    assert all(gate.role is not None for gate in view.gates.values())


@pytest.mark.parametrize("address", gated_addresses(), ids=lambda address: address.route)
def test_a_method_without_a_gate_is_refused(api: Api, address: Any) -> None:
    gates = set(address.view.gates)
    path = address.template.format_map(Everything(org_id=str(api.cast.org.id))).removeprefix("/api")
    refused = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"} - gates
    for method in refused:
        answer = api.send("owner", method, path)
        assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")
        assert set(answer["Allow"].split(", ")) == gates | ({"HEAD"} if "GET" in gates else set())
    assert api.send("nobody", "BREW", path, REMOTE_ADDR="10.3.0.1").status_code == 401


def test_a_forgotten_gate_is_caught(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a method whose gate is taken away is refused, and the table above would say so."""
    from orgs.api.organizations import OrganizationDetail

    monkeypatch.setattr(OrganizationDetail, "gates", {"GET": Gate(OrganizationDetail.gates["GET"].role)})
    assert api.refused("owner", "DELETE", "/orgs/{org}") == (405, "method_not_allowed")
    assert set(OrganizationDetail.gates) != handlers(OrganizationDetail)


class Everything(dict[str, str]):
    """A value for every variable of a path."""

    def __missing__(self, key: str) -> str:
        return "x"
