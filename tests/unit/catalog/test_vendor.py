"""Vendor: what it says about itself, and its way through the database row."""

import json

import pytest

from gateway.catalog.vendor import (
    CredentialField,
    HeaderTemplate,
    ToolOverride,
    Validation,
    Vendor,
    vendor_from_json,
    vendor_to_json,
)

ACME = Vendor(
    slug="acme",
    name="Acme RMM",
    url="https://{zone}.acme.example/mcp",
    tool_prefix="acme",
    category="Demo",
    docs_url="https://acme.example/docs",
    timeout_seconds=12.5,
    headers=(HeaderTemplate("X-Api-Key", "{apiKey}"),),
    fields=(
        CredentialField("apiKey", "API key", secret=True, required=True),
        CredentialField("zone", "Zone", secret=False, required=True, options=("eu", "us"), default="eu", help="Where"),
    ),
    validation=Validation("acme_whoami", {"depth": 1}),
    tools={"acme_list_devices": ToolOverride(read_only=True, ttl_seconds=60)},
    verified=True,
)
OPEN = Vendor(slug="open", name="Open", url="https://open.example/mcp", tool_prefix="open")


def test_a_placeholder_in_the_address_makes_it_the_customers() -> None:
    assert ACME.customer_supplied_url
    assert not OPEN.customer_supplied_url


def test_secret_fields_are_named() -> None:
    assert ACME.secret_fields == {"apiKey"}
    assert OPEN.secret_fields == frozenset()


def test_a_vendor_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        ACME.slug = "other"  # type: ignore[misc]


@pytest.mark.parametrize("vendor", [ACME, OPEN], ids=["full", "bare"])
def test_json_brings_the_same_vendor_back(vendor: Vendor) -> None:
    assert vendor_from_json(json.loads(json.dumps(vendor_to_json(vendor)))) == vendor


def test_a_row_of_an_older_release_gets_safe_defaults() -> None:
    old = {
        "slug": "old",
        "name": "Old",
        "url": "https://old.example",
        "tool_prefix": "old",
        "fields": [{"name": "key"}],
    }
    vendor = vendor_from_json(old)
    assert vendor.timeout_seconds == 30
    assert vendor.fields == (CredentialField("key", "key", secret=True, required=True),)
    assert not vendor.verified


@pytest.mark.parametrize(
    "row", [{}, {"slug": "x"}, [], None, {**vendor_to_json(OPEN), "fields": [3]}, {**vendor_to_json(OPEN), "tools": []}]
)
def test_what_is_not_a_vendor_is_refused(row: object) -> None:
    with pytest.raises(ValueError, match="not a vendor definition"):
        vendor_from_json(row)  # type: ignore[arg-type]
