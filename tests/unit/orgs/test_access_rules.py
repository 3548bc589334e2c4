"""The rules for the use of a vendor and for the calls of a tool."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from orgs.access_rules import may_call_tool, may_use_vendor
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role

PERSON = Principal(
    kind=PrincipalKind.PERSON,
    subject="u1",
    label="Anna",
    org_id=uuid.uuid4(),
    role=Role.MEMBER,
    team_ids=(),
    granted_vendors=frozenset({"acme"}),
    scopes=frozenset({"mcp:all"}),
    client_pk=uuid.uuid4(),
    client_id="c",
    client_name="Client",
    user_id=uuid.uuid4(),
)
SERVICE = replace(PERSON, kind=PrincipalKind.SERVICE, granted_vendors=None, user_id=None)


@pytest.mark.parametrize(
    ("role", "vendor", "default_all", "expected"),
    [
        (Role.OWNER, "globex", False, True),
        (Role.ADMIN, "globex", False, True),
        (Role.MEMBER, "acme", False, True),
        (Role.MEMBER, "globex", False, False),
        (Role.MEMBER, "globex", True, True),
    ],
)
def test_people(role: Role, vendor: str, default_all: bool, expected: bool) -> None:
    assert may_use_vendor(replace(PERSON, role=role), vendor, default_access_all=default_all) is expected


def test_service_clients_may_use_all_until_a_list_says_otherwise() -> None:
    assert may_use_vendor(SERVICE, "globex", default_access_all=False)
    listed = replace(SERVICE, granted_vendors=frozenset({"acme"}))
    assert may_use_vendor(listed, "acme", default_access_all=True)
    assert not may_use_vendor(listed, "globex", default_access_all=True)
    assert may_use_vendor(listed, "globex", default_access_all=False, has_own_credential=True)
    assert not may_use_vendor(PERSON, "globex", default_access_all=False, has_own_credential=True)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [("list", True), ("delete", False), ("List", False), ("list ", False), ("li\u200bst", False), ("ｌist", False)],
)
def test_an_allowlist_names_tools_exactly(tool: str, expected: bool) -> None:
    allowlists = {("acme", "member"): frozenset({"list"})}
    assert may_call_tool(PERSON, "acme", tool, allowlists) is expected


def test_no_list_allows_all_and_an_empty_one_nothing() -> None:
    assert may_call_tool(PERSON, "acme", "anything", {})
    assert may_call_tool(PERSON, "acme", "anything", {("acme", "admin"): frozenset()})
    assert not may_call_tool(PERSON, "acme", "anything", {("acme", "member"): frozenset()})


def test_a_restricted_service_client_with_an_empty_list_may_use_its_own_credentials_only() -> None:
    emptied = replace(SERVICE, granted_vendors=frozenset())
    assert not may_use_vendor(emptied, "acme", default_access_all=True)
    assert may_use_vendor(emptied, "acme", default_access_all=False, has_own_credential=True)
