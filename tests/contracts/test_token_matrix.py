"""Every route of the API with management tokens of each role and scope: a token never does what its person may not."""

from __future__ import annotations

import json

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from orgs.models import Membership
from orgs.roles import TokenScope
from tests.contracts.test_routes import (
    CLIENT,
    DESTINATION,
    MEMBER,
    ORG,
    TABLE,
    Row,
    World,
    cases,
    expected,
    tenant_rows,
    undone,
    world,
    world_of_module,
)
from tests.contracts.url_walk import api_addresses
from tests.factories.management_tokens import bearer_of, made_token

__all__ = ["world", "world_of_module"]  # fixtures
# What a person does signed in: their own names, tokens and place in the organization, its end, and payments.
SESSION_ONLY = {
    ("PATCH", "/api/profile"),
    ("GET", "/api/profile/tokens"),
    ("POST", "/api/profile/tokens"),
    ("DELETE", "/api/profile/tokens/{token_id}"),
    ("GET", "/api/profile/vendor-connections"),
    ("POST", "/api/profile/vendor-connections/{vendor}"),
    ("DELETE", "/api/profile/vendor-connections/{vendor}"),
    ("POST", f"{ORG}/vendor-connections/{{vendor}}"),
    ("POST", "/api/orgs"),
    ("DELETE", ORG),
    ("DELETE", f"{ORG}/membership"),
    ("PUT", f"{MEMBER}/ownership"),
    ("DELETE", f"{ORG}/ownership"),
    ("POST", f"{ORG}/redeem-code"),
    ("POST", "/api/billing/checkout"),
    ("POST", "/api/billing/portal"),
}
# They answer with links that let people in.
NOT_FOR_READERS = {("GET", f"{ORG}/invitations")}
ROLES = ("member", "admin", "owner")


def needed_scope(method: str, path: str) -> TokenScope | None:
    """The table of this file: what a route asks of a token."""
    if (method, path) in SESSION_ONLY:
        return None
    return TokenScope.READ if method == "GET" and (method, path) not in NOT_FOR_READERS else TokenScope.ADMIN


def with_token(world: World, token: str, method: str, path: str, row: Row) -> HttpResponse:
    data = json.dumps(world.filled(row.body)) if row.body else ""
    address = (path + row.query).format(**world.ids)
    return Browser().generic(method, address, data, content_type="application/json", headers=bearer_of(token))  # type: ignore[return-value]


def test_every_gate_declares_what_the_table_says() -> None:
    """A route without a declaration takes no token."""
    declared = {
        (method, address.template): gate.token
        for address in api_addresses()
        if hasattr(address.view, "gates")
        for method, gate in address.view.gates.items()
    }
    assert declared == {route: needed_scope(*route) for route in TABLE}
    assert set(TABLE) >= SESSION_ONLY | NOT_FOR_READERS


@pytest.mark.parametrize(("method", "path", "row"), cases())
def test_every_role_and_scope_on_every_route(world: World, method: str, path: str, row: Row) -> None:
    needed = needed_scope(method, path)
    tokens = {(who, scope): made_token(world.cast, who, scope=scope) for who in ROLES for scope in TokenScope}
    before = tenant_rows()
    for (who, scope), token in tokens.items():
        answer = undone(lambda token=token: with_token(world, token, method, path, row))  # type: ignore[misc]
        found = answer.status_code, None if answer.status_code < 400 else json.loads(answer.content)["error"]
        if needed is None:
            assert found == (403, "session_needed"), (who, scope)
        elif scope is TokenScope.READ and needed is TokenScope.ADMIN:
            assert found == (403, "token_scope_too_low"), (who, scope)
        else:
            assert answer.status_code == expected(row, who), (who, scope, answer.content)
        assert answer["Cache-Control"] == "no-store"
    assert tenant_rows() == before, "undone"


OPEN_TO_TOKENS = [
    each
    for each in cases()
    if "org_id" in str(each.values) and needed_scope(str(each.values[0]), str(each.values[1])) is not None
]


@pytest.mark.parametrize(("method", "path", "row"), OPEN_TO_TOKENS)
def test_a_token_opens_its_own_organization_only(world: World, method: str, path: str, row: Row) -> None:
    """Its person owns the other organization too, and a stranger's token leads nowhere."""
    Membership.objects.create(organization=world.cast.org, user=world.cast.user("other_owner"), role="owner")
    before = tenant_rows()
    token = made_token(world.cast, "other_owner", organization=world.cast.other_org)
    answer = with_token(world, token, method, path, row)
    assert (answer.status_code, json.loads(answer.content)["error"]) == (404, "not_found")
    unchanged = tenant_rows()
    assert {name: rows for name, rows in unchanged.items() if name != "AdminAuditEntry"} == {
        name: rows for name, rows in before.items() if name != "AdminAuditEntry"
    }


def test_a_reader_is_refused_every_method_that_changes(world: World) -> None:
    token = made_token(world.cast, "owner", scope=TokenScope.READ)
    for method, path in TABLE:
        if method != "GET":
            answer = with_token(world, token, method, path, TABLE[method, path])
            assert answer.status_code == 403
    assert with_token(world, token, "GET", f"{CLIENT}/tool-access", Row("admin", 200)).status_code == 200
    assert with_token(world, token, "GET", DESTINATION, Row("admin", 200)).status_code == 200
