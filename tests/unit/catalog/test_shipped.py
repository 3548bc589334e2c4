"""The shipped catalog: every vendor is complete, unique and usable with sample values."""

import base64
from collections import Counter

import pytest

from gateway.catalog.catalog import Catalog
from gateway.catalog.fields import check_fields
from gateway.catalog.parsing import decode_catalog
from gateway.catalog.registered_clients import with_client
from gateway.catalog.shipped import shipped_files
from gateway.catalog.templates import ACCESS_TOKEN, vendor_headers, vendor_url
from gateway.catalog.vendor import CATEGORIES, CONNECTION_LEVELS, Vendor
from tests.factories.catalog_text import parse_catalog

VENDORS = [
    vendor
    for path in shipped_files()
    for vendor in parse_catalog(decode_catalog(path.read_bytes(), path.name), path.name)
]
_HEADER_VENDORS = """
    github linear stripe sentry atlassian pagerduty supabase neon cloudflare intercom monday airtable make zapier
    render close telnyx apify tavily firecrawl exa ref context7 posthog
"""
HEADER_VENDORS = _HEADER_VENDORS.split()
_SIGN_IN_VENDORS = """
    notion prisma webflow amplitude amplitude-eu planetscale honeycomb honeycomb-eu buildkite huggingface asana hubspot
"""
SIGN_IN_VENDORS = _SIGN_IN_VENDORS.split()
# They take a key, too.
ALSO_BY_SIGN_IN = ["linear", "sentry", "stripe", "intercom", "cloudflare", "neon", "posthog", "github"]
# An operator has to register a client first.
REGISTERED_BY_HAND = ["github", "asana", "hubspot"]
OPEN_VENDORS = ["microsoft-learn", "deepwiki", "aws-knowledge"]
MSP_VENDORS = ["autotask", "datto-rmm", "itglue", "huntress", "pax8", "pandadoc"]


def sample(vendor: Vendor) -> dict[str, str]:
    """A value for every field of the vendor."""
    values = {each.name: each.options[-1] if each.options else f"sample-{each.name}" for each in vendor.fields}
    if "baseUrl" in values:
        values["baseUrl"] = "https://tools.example.com"
    return values


@pytest.fixture(params=VENDORS, ids=lambda vendor: vendor.slug)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    shipped: Vendor = request.param
    return shipped


def test_the_vendors_we_promise_are_there() -> None:
    assert {each.slug for each in VENDORS} == {
        *(*HEADER_VENDORS, *SIGN_IN_VENDORS, *OPEN_VENDORS, *MSP_VENDORS),
        "intercom-eu",
    }


def test_slugs_prefixes_and_names_are_unique_over_all_files() -> None:
    for key in ("slug", "tool_prefix", "name"):
        assert [value for value, times in Counter(getattr(each, key) for each in VENDORS).items() if times > 1] == []


def test_every_vendor_is_routed_by_its_own_prefix(vendor: Vendor) -> None:
    assert Catalog(VENDORS).owner_of(f"{vendor.tool_prefix}_tool") == vendor


def test_every_vendor_is_described(vendor: Vendor) -> None:
    assert vendor.docs_url.startswith("https://")
    assert vendor.category != "Other"
    assert len(vendor.tool_prefix) <= 16  # names of 64 characters have to hold prefix and tool
    assert not vendor.verified
    for each in vendor.fields:
        assert each.label != each.name
        assert len(each.help) >= 20
        assert each.help.endswith((".", "…"))
        assert each.placeholder or each.options


def test_every_vendor_takes_sample_fields_and_sends_every_value(vendor: Vendor) -> None:
    fields = check_fields(vendor, sample(vendor))
    headers = vendor_headers(vendor, fields)
    url = vendor_url(vendor, fields)
    assert len(headers) == len(vendor.headers)
    sent = url + "".join(headers.values())
    if authorization := headers.get("Authorization", "").removeprefix("Basic "):
        sent += base64.b64decode(authorization).decode() if "{b64:" in vendor.headers[0].value else ""
    assert [name for name, value in fields.items() if value not in sent] == []
    assert "{" not in sent


def test_secrets_stay_out_of_addresses(vendor: Vendor) -> None:
    fields = sample(vendor)
    url = vendor_url(vendor, fields)
    assert url.startswith("https://")
    assert [name for name in vendor.secret_fields if fields[name] in url] == []


@pytest.mark.parametrize("slug", HEADER_VENDORS + MSP_VENDORS)
def test_vendors_with_keys_hide_them(slug: str) -> None:
    shipped = Catalog(VENDORS).by_slug[slug]
    assert shipped.secret_fields
    assert any(field.required for field in shipped.fields) == (slug != "context7")


def test_who_is_connected_by_a_sign_in() -> None:
    by_sign_in = {each.slug for each in VENDORS if each.oauth is not None}
    assert by_sign_in == {*SIGN_IN_VENDORS, *ALSO_BY_SIGN_IN}
    assert {each.slug for each in VENDORS if not each.takes_key} == {*SIGN_IN_VENDORS}


@pytest.mark.parametrize("slug", REGISTERED_BY_HAND)
def test_the_client_of_a_vendor_is_in_the_environment(slug: str) -> None:
    shipped = Catalog(VENDORS).by_slug[slug]
    assert shipped.oauth is not None
    names = [f"VENDOR_{slug.upper()}_CLIENT_ID", f"VENDOR_{slug.upper()}_CLIENT_SECRET"]
    assert [shipped.oauth.client_id_env, shipped.oauth.client_secret_env] == names
    assert shipped.oauth.issuer
    waiting = with_client(shipped, lambda name: "ours" if name == names[0] else "")
    assert waiting.oauth is not None
    assert (waiting.sign_in_levels, waiting.oauth.missing_variables) == ((), (names[1],))
    ready = with_client(shipped, lambda name: "ours")
    assert ready.oauth is not None
    assert (ready.sign_in_levels, ready.oauth.client_id) == (CONNECTION_LEVELS, "ours")


def test_all_others_need_no_client_of_an_operator() -> None:
    assert {each.slug for each in VENDORS if with_client(each, lambda name: "").awaits_client} == {*REGISTERED_BY_HAND}


@pytest.mark.parametrize("slug", ALSO_BY_SIGN_IN)
def test_a_token_goes_where_the_key_would(slug: str) -> None:
    shipped = Catalog(VENDORS).by_slug[slug]
    assert vendor_headers(shipped, {ACCESS_TOKEN: "t"})["Authorization"] == "Bearer t"


@pytest.mark.parametrize("slug", OPEN_VENDORS)
def test_open_vendors_need_nothing(slug: str) -> None:
    shipped = Catalog(VENDORS).by_slug[slug]
    assert not shipped.fields
    assert vendor_headers(shipped, {}) == {}


@pytest.mark.parametrize(
    ("slug", "fields", "header", "value"),
    [
        ("sentry", {"token": "t"}, "Authorization", "Sentry-Bearer t"),
        ("pagerduty", {"token": "t"}, "Authorization", "Token token=t"),
        ("atlassian", {"email": "a@b.c", "apiToken": "t"}, "Authorization", "Basic YUBiLmM6dA=="),
        ("exa", {"apiKey": "k"}, "x-api-key", "k"),
        ("ref", {"apiKey": "k"}, "x-ref-api-key", "k"),
        ("close", {"apiKey": "k"}, "Close-Scope", "mcp.read"),
        ("pandadoc", {"apiKey": "k"}, "Authorization", "API-Key k"),
    ],
)
def test_headers_that_differ_from_bearer(slug: str, fields: dict[str, str], header: str, value: str) -> None:
    assert vendor_headers(Catalog(VENDORS).by_slug[slug], fields)[header] == value


@pytest.mark.parametrize(
    ("slug", "fields", "url"),
    [
        ("make", {"token": "t", "zone": "eu2"}, "https://eu2.make.com/mcp"),
        ("supabase", {"token": "t"}, "https://mcp.supabase.com/mcp?read_only=true"),
        (
            "supabase",
            {"token": "t", "projectRef": "abc", "readOnly": "false"},
            "https://mcp.supabase.com/mcp?project_ref=abc&read_only=false",
        ),
        ("context7", {}, "https://mcp.context7.com/mcp"),
    ],
)
def test_addresses_that_depend_on_fields(slug: str, fields: dict[str, str], url: str) -> None:
    assert vendor_url(Catalog(VENDORS).by_slug[slug], fields) == url


def test_every_category_has_a_message() -> None:
    assert {vendor.category for vendor in VENDORS} == set(CATEGORIES)
