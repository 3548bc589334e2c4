"""Credential fields: what a person may store for a vendor."""

import pytest
from msgspec.structs import replace

from gateway.catalog.fields import check_fields
from gateway.catalog.vendor import CredentialField, HeaderTemplate, Vendor
from gateway.lib.errors import Invalid

VENDOR = Vendor(
    slug="acme",
    name="Acme",
    url="{baseUrl}/mcp?ref={ref}",
    tool_prefix="acme",
    headers=(HeaderTemplate("X-Key", "{apiKey}"), HeaderTemplate("X-Region", "{region}")),
    fields=(
        CredentialField("baseUrl", "Address", secret=False, required=True),
        CredentialField("apiKey", "API key", secret=True, required=True),
        CredentialField("region", "Region", secret=False, required=True, options=("eu", "us"), default="eu"),
        CredentialField("ref", "Reference", secret=False, required=False),
    ),
)
GOOD = {"baseUrl": "https://acme.example", "apiKey": "k"}


def errors(raw: dict[str, object], vendor: Vendor = VENDOR) -> dict[str, list[str]]:
    with pytest.raises(Invalid) as caught:
        check_fields(vendor, raw)
    return caught.value.fields


def test_good_fields_are_returned_trimmed_and_without_empty_ones() -> None:
    raw = {"baseUrl": " https://acme.example ", "apiKey": "\tk\r\n", "region": "us", "ref": "  "}
    assert check_fields(VENDOR, raw) == {"baseUrl": "https://acme.example", "apiKey": "k", "region": "us"}


def test_optional_fields_and_fields_with_a_default_may_be_left_out() -> None:
    assert check_fields(VENDOR, GOOD) == GOOD


def test_a_vendor_without_fields_takes_an_empty_credential() -> None:
    vendor = Vendor(slug="open", name="Open", url="https://open.example", tool_prefix="open")
    assert check_fields(vendor, {}) == {}
    assert errors({"apiKey": "k"}, vendor) == {"apiKey": ["This vendor has no such field."]}


@pytest.mark.parametrize("value", ["", "   "])
def test_a_missing_required_field_is_named(value: str) -> None:
    assert errors({**GOOD, "apiKey": value}) == {"apiKey": ["This field is required."]}
    assert errors({"baseUrl": "https://acme.example"}) == {"apiKey": ["This field is required."]}


def test_every_fault_is_reported_at_once() -> None:
    found = errors({"apikey": "typo", "region": "moon", "ref": 3})
    assert found == {
        "apikey": ["This vendor has no such field."],
        "baseUrl": ["This field is required."],
        "apiKey": ["This field is required."],
        "region": ["Must be one of: eu, us."],
        "ref": ["Must be text."],
    }


@pytest.mark.parametrize("value", [None, 1, True, ["k"], {"a": "b"}, b"k"])
def test_only_text_is_taken(value: object) -> None:
    assert errors({**GOOD, "apiKey": value}) == {"apiKey": ["Must be text."]}


@pytest.mark.parametrize(
    "value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\x1bb", "a\x7fb", "a\u2028b", "a\ud800b"]
)
def test_control_characters_are_refused_and_not_repeated(value: str) -> None:
    found = errors({**GOOD, "apiKey": value})
    assert found == {"apiKey": ["Must not contain line breaks or other control characters."]}


def test_a_value_may_have_eight_kibibytes() -> None:
    assert check_fields(VENDOR, {**GOOD, "apiKey": "k" * 8192})["apiKey"] == "k" * 8192
    too_long = {"apiKey": ["Must be at most 8192 bytes long."]}
    assert errors({**GOOD, "apiKey": "k" * 8193}) == too_long
    assert errors({**GOOD, "apiKey": "é" * 4097}) == too_long


def test_more_than_32_fields_are_refused_as_a_whole() -> None:
    raw: dict[str, object] = {f"field{number}": "x" for number in range(33)}
    assert errors(raw) == {"fields": ["A credential has at most 32 fields."]}
    assert len(errors(dict(list(raw.items())[:32]))) == 34  # all 32, and the two that are missing


def test_a_long_unknown_name_is_not_repeated_in_full() -> None:
    [name] = errors({**GOOD, "n" * 1000: "x"})
    assert len(name) == 60


@pytest.mark.parametrize("address", ["acme.example", "ftp://acme.example", "https://me:pw@acme.example", "https://"])
def test_an_address_that_cannot_be_used_is_refused_when_it_is_stored(address: str) -> None:
    [message] = errors({**GOOD, "baseUrl": address})["baseUrl"]
    assert message[0].isupper()
    assert message.endswith(".")
    assert "pw" not in message


def test_a_value_that_fits_no_header_is_refused_when_it_is_stored() -> None:
    assert errors({**GOOD, "apiKey": "€"}) == {"apiKey": ["Has characters that cannot be sent in a header."]}


def test_a_colon_in_the_name_of_a_basic_pair_is_refused_when_it_is_stored() -> None:
    vendor = replace(VENDOR, headers=(HeaderTemplate("Authorization", "Basic {b64:ref:apiKey}"),))
    assert errors({**GOOD, "ref": "a:b"}, vendor) == {"ref": ["May not contain ':'."]}


def test_the_error_is_a_refusal_with_fields_and_without_values() -> None:
    with pytest.raises(Invalid) as caught:
        check_fields(VENDOR, {**GOOD, "apiKey": "hush\n1"})
    assert (caught.value.code, caught.value.status) == ("invalid", 400)
    assert caught.value.fields.keys() == {"apiKey"}
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(caught.value.fields)
