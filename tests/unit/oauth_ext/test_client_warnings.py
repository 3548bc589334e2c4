"""The warnings of the consent page, by name, address and age of the client."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oauth_ext.client_warnings import AskingClient, warnings_of

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def found(
    name: str, redirect_uri: str, *, age: timedelta = DAY, vouching: str = "", registered_itself: bool = True
) -> list[str]:
    return [each.value for each in warnings_of(AskingClient(name, redirect_uri, registered_itself, vouching, age))]


@pytest.mark.parametrize(
    ("name", "redirect_uri"),
    [
        ("Claude Code", "http://127.0.0.1:5000/cb"),
        ("Some agent", "http://localhost/cb"),
        ("Some agent", "http://[::1]:5000/cb"),
        ("Cursor", "cursor://anysphere.cursor-mcp/oauth/callback"),
        ("Claude", "https://claude.ai/api/mcp/auth_callback"),
        ("Some agent", "https://claude.ai/api/mcp/auth_callback"),
    ],
)
def test_what_is_normal_causes_no_warning(name: str, redirect_uri: str) -> None:
    assert found(name, redirect_uri, age=MINUTE) == []


@pytest.mark.parametrize(
    ("name", "redirect_uri", "expected"),
    [
        ("Some agent", "https://app.example/cb", ["unverified_host"]),
        ("Claude", "https://evil.example/cb", ["other_name", "unverified_host"]),
        ("CLAUDE desktop", "https://claude.ai.evil.example/cb", ["other_name", "unverified_host"]),
        ("Claude", "https://evilclaude.ai/cb", ["other_name", "unverified_host"]),
        ("Claude", "https://vscode.dev/redirect", ["other_name"]),
        ("Claude", "https://pages.claude.ai/cb", ["unverified_host"]),
        ("app.example.com", "https://evil.example/cb", ["other_name", "unverified_host"]),
        ("app.example.com", "https://app.example.com/cb", ["unverified_host"]),
        ("Claude (evil.com)", "https://evil.com/cb", ["other_name", "unverified_host"]),
        ("bank.com by evil.com", "https://evil.com/cb", ["other_name", "unverified_host"]),
        ("Node.js tool", "https://app.example/cb", ["unverified_host"]),
        ("", "https://app.example/cb", ["unverified_host"]),
    ],
)
def test_an_address_on_the_internet_is_weighed(name: str, redirect_uri: str, expected: list[str]) -> None:
    assert found(name, redirect_uri) == expected
    assert found(name, redirect_uri, registered_itself=False) == []


@pytest.mark.parametrize(
    ("age", "is_new"), [(timedelta(0), True), (15 * MINUTE - timedelta(seconds=1), True), (15 * MINUTE, False)]
)
def test_a_client_is_new_for_a_quarter_of_an_hour(age: timedelta, is_new: bool) -> None:
    assert ("new" in found("Some agent", "https://app.example/cb", age=age)) is is_new


@pytest.mark.parametrize(
    ("vouching", "redirect_uri", "expected"),
    [
        ("app.example", "https://app.example/cb", []),
        ("app.example:8443", "https://app.example:8443/cb", []),
        ("app.example", "https://login.app.example/cb", []),
        ("app.example", "https://evil.example/cb", ["unverified_host"]),
        ("app.example", "https://evilapp.example/cb", ["unverified_host"]),
        ("login.app.example", "https://app.example/cb", ["unverified_host"]),
    ],
)
def test_a_document_vouches_for_its_own_host(vouching: str, redirect_uri: str, expected: list[str]) -> None:
    assert found("Some agent", redirect_uri, vouching=vouching, age=MINUTE) == expected


def test_a_document_does_not_vouch_for_a_name() -> None:
    assert found("Claude", "https://evil.example/cb", vouching="evil.example") == ["other_name"]
