"""The rules for the use of a vendor and for the calls of a tool."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from orgs.access_rules import Allowlists, ToolLimit, may_use_vendor, refusing_limit
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
READS, ALL = frozenset({"list"}), frozenset({"list", "delete"})


def may_call_tool(principal: Principal, vendor: str, tool: str, allowlists: Allowlists) -> bool:
    return refusing_limit(principal, vendor, tool, allowlists, is_read_only=False) is None


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


@pytest.mark.parametrize(
    ("by_role", "own", "tool", "expected"),
    [
        (None, None, "delete", None),
        (None, READS, "list", None),
        (None, READS, "delete", ToolLimit.OWN),
        (None, frozenset(), "list", ToolLimit.OWN),
        (READS, None, "delete", ToolLimit.ROLE),
        # Both lists count, and neither extends the other.
        (READS, ALL, "list", None),
        (READS, ALL, "delete", ToolLimit.ROLE),
        (ALL, READS, "delete", ToolLimit.OWN),
    ],
)
def test_a_service_client_is_held_by_the_list_of_the_role_and_by_its_own(
    by_role: frozenset[str] | None, own: frozenset[str] | None, tool: str, expected: ToolLimit | None
) -> None:
    allowlists = {} if by_role is None else {("acme", "member"): by_role}
    limited = replace(SERVICE, own_allowlists=None if own is None else {"acme": own})
    assert refusing_limit(limited, "acme", tool, allowlists, is_read_only=False) is expected
    assert refusing_limit(limited, "globex", tool, allowlists, is_read_only=False) is None


@pytest.mark.parametrize(
    ("tool", "is_read_only", "expected"),
    [
        ("list", True, None),
        ("list", False, ToolLimit.READ_ONLY),
        ("new", True, ToolLimit.OWN),
    ],
)
def test_a_read_only_service_client_calls_marked_tools_that_its_lists_allow(
    tool: str, is_read_only: bool, expected: ToolLimit | None
) -> None:
    limited = replace(SERVICE, own_allowlists={"acme": ALL}, is_read_only=True)
    assert refusing_limit(limited, "acme", tool, {}, is_read_only=is_read_only) is expected
