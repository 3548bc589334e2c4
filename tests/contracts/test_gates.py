"""Every method of every view of ours has a gate, and nothing else answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from gateway.web.api_view import ApiView, OrgView
from gateway.web.chosen_org import ChosenOrgIn, ChosenOrgView
from gateway.web.gate import Gate, PlanFunction
from gateway.web.org_page import OrgPage
from tests.contracts.chosen_org_urls import CHOSEN_VIEWS
from tests.contracts.url_walk import Address, addresses, api_addresses
from tests.factories.api import Api

METHODS = ("get", "post", "put", "patch", "delete", "trace")
# Addresses below /api that are no part of the management API, each with its own kind of authority.
NOT_GATED = {"api/schema", "api/webhooks/stripe"}
# Pages of no organization, with their methods. Each is counted where it is addressed: see test_backstop.
PLAIN_PAGES = {
    "AuthenticateView": {"GET"},
    "CallbackView": {"GET"},
    "ConsentPage": {"GET", "POST"},
    "DevicePage": {"GET", "POST"},
    "InvitePage": {"GET", "POST"},
    "SignOutView": {"GET", "POST"},
    "BackchannelLogoutView": {"POST"},
    "EndSessionsPage": {"POST"},
    "NewTokenPage": {"GET", "POST"},
    "JoinPage": {"POST"},
    "MailChoicesPage": {"POST"},
    "OwnConnectionsPage": {"GET", "POST"},
    "ProfilePage": {"GET", "POST"},
    "RevokeTokenPage": {"GET", "POST"},
    "StaffSignInView": {"GET"},
    "UnsubscribePage": {"GET", "POST"},
    "VendorCallbackPage": {"GET"},
    "WelcomePage": {"GET", "POST"},
}


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


def plain_pages() -> list[Address]:
    """Every other view that is a class."""
    return [
        each
        for each in addresses()
        if isinstance(each.view, type)
        and not issubclass(each.view, ApiView | OrgPage)
        # The console of staff has refusals of its own: tests/api/support.
        and not each.view.__module__.startswith(("django.", "gateway.support."))
    ]


def test_there_is_something_to_check() -> None:
    assert len(api_views()) > 25
    assert len(pages()) > 3


@pytest.mark.parametrize("view", api_views(), ids=lambda view: view.__name__)
def test_every_method_of_the_api_has_a_gate_and_an_operation(view: type[ApiView]) -> None:
    assert issubclass(view, ApiView)
    assert set(view.gates) == set(view.operations) == handlers(view)
    assert not view.permission_classes, "authority is the gate's business"


@pytest.mark.parametrize("view", api_views(), ids=lambda view: view.__name__)
def test_gates_of_an_organization_name_a_role_and_others_none(view: type[ApiView]) -> None:
    is_of_organization = issubclass(view, OrgView)
    assert all((gate.role is not None) == is_of_organization for gate in view.gates.values())
    if not is_of_organization:
        assert not any(gate.plan or gate.entitlement for gate in view.gates.values())


@pytest.mark.parametrize("address", gated_addresses(), ids=lambda address: address.route)
def test_addresses_of_an_organization_are_served_by_its_views(address: Any) -> None:
    assert ("<str:org_id>" in address.route) == (
        issubclass(address.view, OrgView) and not issubclass(address.view, ChosenOrgView)
    )


def chosen_views() -> list[type[ChosenOrgView]]:
    """Of the service, and of the test's own addresses."""
    return [view for view in api_views() if issubclass(view, ChosenOrgView)] + CHOSEN_VIEWS


@pytest.mark.parametrize("view", chosen_views(), ids=lambda view: view.__name__)
def test_an_organization_outside_the_path_is_named_alike(view: type[ChosenOrgView]) -> None:
    """Each gate names a role, and each body has the member that names the organization."""
    assert set(view.gates) == set(view.operations) == handlers(view)
    assert all(gate.role is not None for gate in view.gates.values())
    for operation in view.operations.values():
        assert operation.body is None or issubclass(operation.body, ChosenOrgIn)


@pytest.mark.parametrize("view", pages(), ids=lambda view: view.__name__)
def test_every_method_of_a_page_has_a_gate(view: type[OrgPage]) -> None:
    assert {name.partition(" ")[0] for name in view.gates} == handlers(view)
    assert all(gate.role is not None for gate in view.gates.values())


@pytest.mark.parametrize("views", [api_views, pages])
def test_every_function_of_the_plan_is_behind_a_gate(views: Callable[[], list[Any]]) -> None:
    """The plan's page lists the functions, and each is refused by pages and API alike."""
    assert {gate.plan for view in views() for gate in view.gates.values() if gate.plan} == set(PlanFunction)


def test_pages_of_no_organization_are_listed_with_their_methods() -> None:
    assert {each.view.__name__: handlers(each.view) for each in plain_pages()} == PLAIN_PAGES


@pytest.mark.parametrize("address", plain_pages(), ids=lambda address: address.route)
def test_a_method_that_a_plain_page_does_not_declare_is_refused(api: Api, address: Address) -> None:
    declared = PLAIN_PAGES[address.view.__name__]
    path = address.template.format_map(Everything())
    for who in ("owner", "nobody"):
        for method in {"PUT", "PATCH", "DELETE", "TRACE", "BREW"} | ({"POST"} - declared):
            answer = api.cast.client(who).generic(method, path)
            asked_to_sign_in = answer.status_code == 302 and answer["Location"].startswith(("/signin", "/oidc/"))
            # Consent looks for the app's request first, and there is none.
            assert answer.status_code in {405, 410} or (who == "nobody" and asked_to_sign_in), (who, method)


# GET begins and ends a sign-in there.
GET_ALONE = {"AuthenticateView", "CallbackView"}


@pytest.mark.parametrize(
    "address",
    [each for each in plain_pages() if each.view.__name__ not in GET_ALONE],
    ids=lambda address: address.route,
)
def test_a_plain_page_answers_head_as_it_answers_get(api: Api, address: Address) -> None:
    path = address.template.format_map(Everything())
    for who in ("owner", "other_owner", "nobody"):
        got, asked = api.cast.client(who).get(path), api.cast.client(who).head(path)
        assert (asked.status_code, asked.headers.get("Location")) == (got.status_code, got.headers.get("Location"))
        assert asked.content == b""


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
        return str(UUID(int=0)) if key == "token_id" else "x"
