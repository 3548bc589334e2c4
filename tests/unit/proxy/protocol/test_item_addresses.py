"""Addresses of resources: both directions of the rule, which never changes, and the addresses that no vendor sees."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import AnyUrl

from gateway.lib.uri_templates import MAX_ADDRESS_CHARACTERS, MAX_EXPRESSIONS, MAX_TEMPLATE_CHARACTERS
from proxy.protocol.item_addresses import (
    AUDITED_CHARACTERS,
    MAX_CHARACTERS,
    audited,
    exposed,
    fault_in,
    fits,
    split,
)

SLUGS = ("acme", "acme-rmm", "git", "9lives", "v", "ui")
# Written down in people's notes: a change of this table breaks them.
FOR_EVER = [
    ("acme", "file:///notes.md", "acme+file:///notes.md"),
    ("acme-rmm", "https://host.example/a?b#c", "acme-rmm+https://host.example/a?b#c"),
    ("9lives", "test://x", "v.9lives+test://x"),
    ("acme", "ui://board/main", "ui://acme+board/main"),
    ("9lives", "ui://board", "ui://9lives+board"),
    ("acme", "git+ssh://host/repository", "acme+git+ssh://host/repository"),
    ("acme", "readme", "acme+readme"),
    ("acme", "test://thing/{id}", "acme+test://thing/{id}"),
]


@pytest.mark.parametrize(("slug", "own", "address"), FOR_EVER)
def test_the_rule(slug: str, own: str, address: str) -> None:
    assert exposed(slug, own) == address
    assert split(address, SLUGS) == (slug, own)


@given(st.sampled_from(SLUGS), st.text(max_size=40))
@example("acme", "UI://x")
@example("ui", "//x+y")
def test_each_exposed_address_leads_back(slug: str, own: str) -> None:
    assert split(exposed(slug, own), SLUGS) == (slug, own)


@pytest.mark.parametrize(
    "address",
    [
        "test://x",
        "other+test://x",
        "9lives+test://x",
        "v.acme+test://x",
        "ui://board",
        "ui://other+board",
        "acme",
        "+x",
        "",
    ],
)
def test_other_addresses_name_no_vendor(address: str) -> None:
    assert split(address, SLUGS) is None


@pytest.mark.parametrize("address", [address for _, own, address in FOR_EVER if ":" in own and "{" not in own])
def test_clients_that_check_addresses_accept_them(address: str) -> None:
    assert str(AnyUrl(address)) == address


@pytest.mark.parametrize(
    "address", ["test://x", "file:///a/b..c/...", "test://x?path=../y", "a b", "x" * MAX_CHARACTERS, "test://ü"]
)
def test_addresses_that_vendors_see(address: str) -> None:
    assert fault_in(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        *(
            None,
            7,
            "",
            "x" * (MAX_CHARACTERS + 1),
            "test://a\x00b",
            "test://a\u202eb",
            "..",
            "../x",
            "file:///a/..",
            "a/./b",
        ),
        *("file:///a/%2e%2e/b", "file:///a/%2E./b", "file:///%252e%252e/b", "file:///a\\..\\b", "file:///a%5c..%5cb"),
        *("file:///a/..?x", "file:///a%2f..%2fb"),
    ],
)
def test_addresses_that_no_vendor_sees(address: object) -> None:
    assert fault_in(address)


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("test://thing/{id}", "test://thing/7"),
        ("test://{a}/{b}.json", "test://x/y.json"),
        ("file:///{+path}", "file:///a/b/c"),
        ("test://list{?page,size}", "test://list?page=1/2"),
        ("test://list{?page}", "test://list"),
        ("test://plain", "test://plain"),
    ],
)
def test_templates_that_fit(template: str, address: str) -> None:
    assert fits(template, address)


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("test://thing/{id}", "test://thing/7/8"),
        ("test://thing/{id}", "test://other/7"),
        ("test://{a}/{b}.json", "test://x.json"),
        ("test://{a}/end", "test://x/end/more"),
        ("{+any}", "test://thing/7"),
        ("{scheme}://x", "test://x"),
        ("test{+any}", "test://x"),
        ("test://plain", "test://plainer"),
        ("test://aa{x}aa", "test://aaa"),
    ],
)
def test_templates_that_do_not(template: str, address: str) -> None:
    assert not fits(template, address)


def test_a_template_of_many_parts_takes_no_time() -> None:
    assert not fits("a:" + "{+x}a" * 2_000 + "b", "a:" + "a" * 4_000)
    assert fits("a:{+x}", "a:" + "a" * (MAX_ADDRESS_CHARACTERS - 2))
    assert not fits("a:{+x}", "a:" + "a" * (MAX_ADDRESS_CHARACTERS - 1))
    assert fits("a:" + "{+x}" * MAX_EXPRESSIONS, "a:b")
    assert not fits("a:" + "{+x}" * (MAX_EXPRESSIONS + 1), "a:b")
    assert fits("a:{+x}" + "b" * (MAX_TEMPLATE_CHARACTERS - 6), "a:" + "b" * MAX_TEMPLATE_CHARACTERS)
    assert not fits("a:{+x}" + "b" * (MAX_TEMPLATE_CHARACTERS - 5), "a:" + "b" * MAX_TEMPLATE_CHARACTERS)


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://host/path?token=secret", "https://host/path"),
        ("https://me:secret@host/path#secret", "https://host/path"),
        ("acme+https://secret@host/path", "acme+https://host/path"),
        ("https://me@mine:secret@host/path", "https://host/path"),
        (" https://me:secret@host/path", " https://host/path"),
        ("acme+proxy:https://me:secret@host", "acme+proxy:https://host"),
        ("https://" + "s" * 5_000 + "@host/path", "https://"),
        ("https://me:" + "s" * 5_000, "https://"),
        ("mail:someone@host", "mail:someone@host"),
        ("x" * 5_000, "x" * AUDITED_CHARACTERS),
    ],
)
def test_what_the_log_keeps(address: str, kept: str) -> None:
    assert audited(address) == kept
