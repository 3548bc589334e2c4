"""Templates: the headers and the address of a vendor call."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalog.templates import ACCESS_TOKEN, FieldError, vendor_headers, vendor_url
from gateway.catalog.vendor import CredentialField, HeaderTemplate, OAuthSettings, Vendor


def make_vendor(*headers: tuple[str, str], url: str = "https://v.example/mcp", **fields: bool | str) -> Vendor:
    """A vendor whose fields are given as name=required, or name="default" for an optional one with a default."""
    return Vendor(
        slug="v",
        name="V",
        url=url,
        tool_prefix="v",
        headers=tuple(HeaderTemplate(name, value) for name, value in headers),
        fields=tuple(
            CredentialField(
                name,
                name,
                secret=True,
                required=required is True,
                default=required if isinstance(required, str) else "",
            )
            for name, required in fields.items()
        ),
    )


def test_headers_carry_the_fields() -> None:
    vendor = make_vendor(("Authorization", "Bearer {token}"), ("X-Client", "gateway"), token=True)
    assert vendor_headers(vendor, {"token": "t"}) == {"Authorization": "Bearer t", "X-Client": "gateway"}


@pytest.mark.parametrize("fields", [{}, {"key": ""}])
def test_an_optional_header_without_a_value_is_left_out(fields: dict[str, str]) -> None:
    vendor = make_vendor(("Authorization", "Bearer {key}"), ("X-Client", "gateway"), key=False)
    assert vendor_headers(vendor, fields) == {"X-Client": "gateway"}


def test_an_optional_header_with_a_value_is_sent() -> None:
    assert vendor_headers(make_vendor(("X-Key", "{key}"), key=False), {"key": "k"}) == {"X-Key": "k"}


def test_a_header_of_two_optional_fields_is_sent_when_one_is_there() -> None:
    vendor = make_vendor(("Authorization", "Basic {b64:user:token}"), user=False, token=False)
    assert vendor_headers(vendor, {"token": "t"}) == {"Authorization": "Basic OnQ="}


def test_a_default_stands_in() -> None:
    vendor = make_vendor(("X-Scope", "{scope}"), scope="read")
    assert vendor_headers(vendor, {}) == {"X-Scope": "read"}
    assert vendor_headers(vendor, {"scope": "write"}) == {"X-Scope": "write"}


def test_a_token_takes_the_place_of_the_key() -> None:
    headers = [("Authorization", "Token {key}"), ("X-Key", "{key}"), ("X-Region", "{region}"), ("X-Client", "gateway")]
    vendor = make_vendor(*headers, key=True, region="eu")
    both = msgspec.structs.replace(vendor, oauth=OAuthSettings())
    rest = {"X-Region": "eu", "X-Client": "gateway"}
    assert vendor_headers(both, {ACCESS_TOKEN: "t", "key": "k"}) == {"Authorization": "Bearer t", **rest}
    assert vendor_headers(both, {"key": "k"}) == {"Authorization": "Token k", "X-Key": "k", **rest}
    with pytest.raises(FieldError):  # nothing that is called as a field of the vendor is a token
        vendor_headers(vendor, {ACCESS_TOKEN: "t"})


@pytest.mark.parametrize("fields", [{}, {"token": ""}])
def test_a_missing_required_field_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(FieldError, match="token: is required"):
        vendor_headers(make_vendor(("Authorization", "Bearer {token}"), token=True), fields)


def test_fields_the_vendor_does_not_have_are_ignored() -> None:
    assert vendor_headers(make_vendor(("X-Key", "{key}"), key=True), {"key": "k", "more": "x\r\ny"}) == {"X-Key": "k"}


@pytest.mark.parametrize("bad", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "a\tb", "a\x7fb", "a\x85b", "€", "\ud800"])
def test_what_cannot_stand_in_a_header_is_refused_and_not_repeated(bad: str) -> None:
    vendor = make_vendor(("X-Two", "{fine} {token}"), fine=True, token=True)
    with pytest.raises(FieldError) as caught:
        vendor_headers(vendor, {"fine": "ok", "token": bad})
    assert caught.value.field == "token"
    assert bad not in str(caught.value)


def test_latin_1_is_sent_as_it_is() -> None:
    assert vendor_headers(make_vendor(("X-Key", "{key}"), key=True), {"key": "é"}) == {"X-Key": "é"}


@given(st.text(max_size=30))
def test_whatever_is_sent_is_one_line_of_latin_1(value: str) -> None:
    vendor = make_vendor(("X-Key", "k {key}"), key=True)
    try:
        sent = vendor_headers(vendor, {"key": value})["X-Key"]
    except FieldError:
        return
    assert not set("\r\n\0") & set(sent.encode("latin-1").decode("latin-1"))


def test_a_fixed_address_needs_no_fields() -> None:
    assert vendor_url(make_vendor(token=True), {}) == "https://v.example/mcp"


def test_an_address_is_filled_in() -> None:
    vendor = make_vendor(url="https://{zone}.v.example/mcp?ref={ref}", zone=True, ref=False)
    assert vendor_url(vendor, {"zone": "EU1"}) == "https://eu1.v.example/mcp"
    assert vendor_url(vendor, {"zone": "eu1", "ref": "a b"}) == "https://eu1.v.example/mcp?ref=a%20b"
    with pytest.raises(FieldError, match="zone: is required"):
        vendor_url(vendor, {"ref": "x"})
