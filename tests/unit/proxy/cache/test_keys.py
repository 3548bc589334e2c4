"""Calls that share a result, and calls that never do."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

import pytest

from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialRef
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.cache.keys import cache_key, epoch_name, scope_of

ORG, TEAM = uuid.UUID(int=1), uuid.UUID(int=2)


def principal(**changes: Any) -> Principal:
    made = Principal(
        kind=PrincipalKind.SERVICE,
        subject="svc:1:2",
        label="bot",
        org_id=ORG,
        role=Role.MEMBER,
        team_ids=(),
        granted_vendors=None,
        scopes=frozenset({"mcp"}),
        client_pk=uuid.UUID(int=3),
        client_id="svc_bot",
        client_name="bot",
    )
    return replace(made, **changes)


def credential(scope: CredentialScope = CredentialScope.ORGANIZATION, **changes: Any) -> CredentialRef:
    made = CredentialRef(uuid.UUID(int=4), "acme", scope, None, None, "", 1, b"sealed", revision=1)
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("scope", "team_id", "shared_by"),
    [
        (CredentialScope.ORGANIZATION, None, f"org:{ORG}"),
        (CredentialScope.TEAM, TEAM, f"team:{TEAM}"),
        (CredentialScope.NAMED_KEY, TEAM, f"team:{TEAM}"),
        (CredentialScope.SERVICE_CLIENT, None, "user:svc:1:2"),
    ],
)
def test_the_credential_says_who_shares(scope: CredentialScope, team_id: uuid.UUID | None, shared_by: str) -> None:
    assert scope_of(principal(), credential(scope, team_id=team_id)) == shared_by
    assert epoch_name(ORG, shared_by, "acme") == f"{{{ORG}}}cache:{shared_by}:acme", (
        "beside the organization's own epoch"
    )


@pytest.mark.parametrize("scope", [CredentialScope.NAMED_KEY, CredentialScope.TEAM, "invented"])
def test_a_credential_of_nobody_is_shared_by_nobody(scope: Any) -> None:
    with pytest.raises(ValueError, match="nobody shares"):
        scope_of(principal(), credential(scope))


def test_people_with_the_same_credential_share_and_two_organizations_do_not() -> None:
    person = principal(kind=PrincipalKind.PERSON, subject="anna")
    assert scope_of(person, credential()) == scope_of(principal(), credential())
    assert scope_of(principal(org_id=uuid.UUID(int=9)), credential()) != scope_of(principal(), credential())


@dataclass(frozen=True)
class Place:
    name: str
    org_id: uuid.UUID = ORG


def key(
    arguments: dict[str, Any] | None = None, scope: str = "org:1", tool: str = "t", to: str = "u", **ref: Any
) -> Any:
    return cache_key(scope, credential(**ref), tool, arguments or {}, Place(to))


@pytest.mark.parametrize(
    ("one", "same"),
    [({"a": 1, "b": {"c": 2, "d": [1, 2]}}, {"b": {"d": [1, 2], "c": 2}, "a": 1}), ({}, {})],
)
def test_the_order_of_members_does_not_count(one: dict[str, Any], same: dict[str, Any]) -> None:
    assert key(one) == key(same)
    assert hash(key(one)) == hash(key(same))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": {"b": 1}}, {"a": 1, "b": 1}),
        ({"é": 1}, {"e\u0301": 1}),
    ],
)
def test_other_arguments_are_another_call(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": "org:2"},
        {"tool": "u"},
        {"to": "v"},
        {"id": uuid.UUID(int=5)},
        {"revision": 2},
        {"vendor": "globex"},
    ],
)
def test_everything_else_that_differs_is_another_call_too(changes: dict[str, Any]) -> None:
    assert key(**changes) != key()


def test_a_result_belongs_to_the_organization_whose_calls_go_there_whoever_shares_it() -> None:
    owners = {key(scope=scope).owner for scope in (f"org:{ORG}", f"team:{TEAM}", "user:svc:1:2")}
    assert owners == {ORG}
    assert cache_key("org:2", credential(), "t", {}, Place("u", TEAM)).owner == TEAM
