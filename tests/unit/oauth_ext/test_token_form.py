"""Form bodies in one reading."""

from __future__ import annotations

import pytest

from oauth_ext import token_form
from oauth_ext.token_form import FormError

FORM = "application/x-www-form-urlencoded"


def test_known_fields_are_read() -> None:
    body = b"grant_type=client_credentials&scope=mcp%3Aall+mcp&resource=https%3A%2F%2Fa&resource=b&extra=1&"
    fields = token_form.parse(f"{FORM}; charset=UTF-8", body)
    assert fields == {
        "grant_type": ("client_credentials",),
        "scope": ("mcp:all mcp",),
        "resource": ("https://a", "b"),
    }
    assert token_form.first(fields, "scope") == "mcp:all mcp"
    assert token_form.first(fields, "code") == ""


def test_a_field_without_a_value_counts_as_absent() -> None:
    assert token_form.parse(FORM, b"scope=&grant_type=x&client_secret") == {"grant_type": ("x",)}


def test_no_body_at_all_is_an_empty_form() -> None:
    assert token_form.parse("", b"") == token_form.parse(FORM, b"") == {}
    with pytest.raises(FormError, match="The body must be"):
        token_form.parse("application/json", b"")


@pytest.mark.parametrize("name", ["client", "user", "scopes", "organization_id", "expires_in", "__class__"])
def test_no_other_field_reaches_the_library(name: str) -> None:
    assert token_form.parse(FORM, f"{name}=1".encode()) == {}


@pytest.mark.parametrize("content_type", ["", "application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_other_media_types_are_refused(content_type: str) -> None:
    with pytest.raises(FormError, match="The body must be"):
        token_form.parse(content_type, b"grant_type=client_credentials")


@pytest.mark.parametrize("body", [b"scope=a&scope=b", b"scope=&scope=b", b"x=1&x=2", b"grant%5Ftype=a&grant_type=a"])
def test_a_field_given_twice_is_refused(body: bytes) -> None:
    with pytest.raises(FormError, match="twice"):
        token_form.parse(FORM, body)


@pytest.mark.parametrize("body", [b"scope=\xff", b"scope=%ff", b"&".join(b"a%d=1" % n for n in range(101))])
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(FormError, match="well-formed"):
        token_form.parse(FORM, body)


@pytest.mark.parametrize("value", ["%00", "a%0d%0ab", "%C3%A9", "%7F"])
def test_control_and_foreign_characters_are_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(FormError, match="client_secret contains") as refusal:
        token_form.parse(FORM, f"client_secret=topsecret{value}".encode())
    assert "topsecret" not in str(refusal.value)
