"""The demo identity provider's rules on clients, addresses and people."""

from __future__ import annotations

import base64

import pytest

from demo.identity_requests import (
    MAX_FIELDS,
    MAX_NAME_CHARS,
    ClientAuthError,
    Registration,
    authenticate_client,
    check_person,
    is_origin,
    parse_fields,
)

ORIGINS = ("http://127.0.0.1:8000",)
REGISTRATION = Registration("gateway", "a-secret-for-the-tests", ORIGINS)


def basic(credentials: str) -> str:
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "https://gateway.example", "http://[::1]:8000"])
def test_origin_is_scheme_host_and_port(origin: str) -> None:
    assert is_origin(origin)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gateway.example",
        "ftp://a.example",
        "http://",
        "http://a.example/",
        "http://a.example?x",
        "http://u@a.example",
        "http://a.example:99999",
        "http://a.example:x",
        "http://a b.example",
        "http://a.example;x",
        "HTTP://a.example",
    ],
)
def test_anything_else_is_no_origin(text: str) -> None:
    assert not is_origin(text)


@pytest.mark.parametrize(
    ("client_id", "client_secret", "origins"),
    [
        ("", "a-secret-for-the-tests", ORIGINS),
        ("gate way", "a-secret-for-the-tests", ORIGINS),
        ("gateway", "", ORIGINS),
        ("gateway", "too-short", ORIGINS),
        ("gateway", "percent%20is-read-in-two-ways", ORIGINS),
        ("gateway", "a-secret-for-the-tests", ()),
        ("gateway", "a-secret-for-the-tests", ("http://127.0.0.1:8000/",)),
    ],
)
def test_registration_that_could_not_be_used_is_refused(
    client_id: str, client_secret: str, origins: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=r"client|origin") as refusal:
        Registration(client_id, client_secret, origins)
    assert not client_secret or client_secret not in str(refusal.value)


def test_registration_does_not_show_its_secret() -> None:
    assert "a-secret-for-the-tests" not in repr(REGISTRATION)


def test_fields_are_taken_once_and_blanks_are_absent() -> None:
    assert parse_fields("a=1&b=&c=x%20y") == {"a": "1", "c": "x y"}
    for encoded in ("a=1&a=1", "a=%ff", "a=" + "x" * 3000, "&".join(f"f{n}=1" for n in range(MAX_FIELDS + 1))):
        with pytest.raises(ValueError, match=r"."):
            parse_fields(encoded)


@pytest.mark.parametrize(
    "authorization",
    [
        basic("gateway:wrong"),
        basic("another:a-secret-for-the-tests"),
        basic("gateway"),
        "Basic not-base-64!",
        "Basic",
        "Bearer a-secret-for-the-tests",
    ],
)
def test_wrong_authorization_header_is_refused(authorization: str) -> None:
    with pytest.raises(ClientAuthError) as refusal:
        authenticate_client(REGISTRATION, authorization, {})
    assert refusal.value.used_basic


def test_client_id_in_the_form_must_agree_with_the_header() -> None:
    header = basic("gateway:a-secret-for-the-tests")
    assert authenticate_client(REGISTRATION, header, {"client_id": "gateway"}) == "gateway"
    with pytest.raises(ValueError, match="differs"):
        authenticate_client(REGISTRATION, header, {"client_id": "another"})


@pytest.mark.parametrize(
    ("typed_email", "typed_name", "email", "name"),
    [
        ("Alice@Example.COM", "", "alice@example.com", "Alice"),
        ("  bob.b_jones+x@mail.example ", " ", "bob.b_jones+x@mail.example", "Bob B Jones X"),
        ("o'neil@a-b.example", "Seán  Ó Néill", "o'neil@a-b.example", "Seán Ó Néill"),
        ("a@b.example", "two\nlines\u202e", "a@b.example", "two lines"),
        ("a@b.example", "x" * 200, "a@b.example", "x" * MAX_NAME_CHARS),
        ("---@b.example", "", "---@b.example", "---@b.example"),
    ],
)
def test_person_is_read_from_the_form(typed_email: str, typed_name: str, email: str, name: str) -> None:
    person = check_person(typed_email, typed_name)
    assert (person.email, person.name) == (email, name)


@pytest.mark.parametrize(
    "typed_email",
    [
        "",
        "@",
        "a@",
        "@b.example",
        "a@b",
        "a@b..example",
        "a@-b.example",
        "a@@b.example",
        ".a@b.example",
        "a\n@b.example",
        "a@b.example\x00",
        "ä@b.example",
        "a" * 65 + "@b.example",
        "a@" + ".".join(["x" * 60] * 5),
    ],
)
def test_what_is_no_address_is_refused_with_a_sentence(typed_email: str) -> None:
    with pytest.raises(ValueError, match=r"^Enter an e-mail address"):
        check_person(typed_email, "")
