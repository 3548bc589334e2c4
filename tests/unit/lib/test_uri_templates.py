"""Templates of addresses: an address that a right depends on is made of one beyond doubt, or it is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lib.uri_templates import (
    MAX_ADDRESS_CHARACTERS,
    MAX_EXPRESSIONS,
    MAX_TEMPLATE_CHARACTERS,
    fault_in,
    is_made_of,
    is_template,
)


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("file:///docs/{name}", "file:///docs/a.md"),
        ("file:///docs/{name}", "file:///docs/a%2Fb"),
        ("file:///docs/{name}", "file:///docs/"),
        ("file:///docs/{+path}", "file:///docs/a/b.md"),
        ("file:///docs{/path}", "file:///docs/a/b.md"),
        ("file:///docs/{+path}{?version}", "file:///docs/a/b?version=2"),
        ("file:///docs/{name}{?version}", "file:///docs/a?version=2"),
        ("file:///docs/{name}{?version}", "file:///docs/a"),
        ("db://{table}/rows/{id}", "db://users/rows/7"),
        ("db://{table}?limit=9{&more}", "db://users?limit=9&more=1"),
        ("page://x{#part}", "page://x#a/b"),
        ("file:///a{.kind}", "file:///a.md"),
        ("db://rows{?page,size:3}", "db://rows?size=9&page=2"),
        ("db://rows{?page}", "db://rows?page"),
        ("db://rows{?any*}", "db://rows?table=users"),
        ("db://rows{;page}", "db://rows;page=2"),
        ("file:///docs/{+path}", "file:///docs/a..b/c?d=e.f"),
        # Lengths, of characters and not of bytes
        ("db://{table:3}", "db://abc"),
        ("db://{table:3}", "db://%C3%A4bc"),
        ("db://{table:3}", "db://"),
        ("db://{table:3}/{id}", "db://ab/7777"),
        ("db://{+path:3}", "db://a/b"),
        ("db://{a:1,b:3}", "db://abc"),
        ("db://{a:1,b:3}", "db://a,abc"),
        ("db://{a:1,b}", "db://abc,abc"),
        ("db://x{/a:1,b:3}", "db://x/a/abc"),
        ("db://x{.a:3}", "db://x.abc"),
        ("db://x{.a:3}", "db://x.a.b"),
        ("db://{+path:3}", "db://a,b"),
        ("db://x{#a:3}", "db://x#abc"),
        ("db://x{?a:3,b}", "db://x?a=abc&b=abcd"),
        ("db://x{;a:3}", "db://x;a=abc"),
    ],
)
def test_made_of(template: str, address: str) -> None:
    assert is_made_of(template, address)
    assert not fault_in(template)


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("file:///docs/{name}", "file:///docs/a/b"),
        ("file:///docs/{name}", "file:///docs/a?b"),
        ("file:///docs/{name}", "file:///docs/a#b"),
        ("file:///docs/{name}", "file:///docs/a\\b"),
        ("file:///docs/{name}", "FILE:///docs/a"),
        ("file:///docs/{name}", "file:///doc"),
        ("file:///docs/{name}", "file:///docs/{name}"),
        ("file:///docs/{+path}", "file:///docs/{name}"),
        ("file:///docs{?q}", "file:///docs-secret"),
        ("file:///docs{?q}", "file:///docs?q=../../secret"),
        ("file:///docs{/path}", "file:///docs-secret/a"),
        ("file:///docs{.kind}", "file:///docs-secret"),
        ("file:///docs{#part}", "file:///docs-secret"),
        ("db://{table}/rows/{id}", "db://users/secrets/7"),
        # Parameters that the template does not name
        ("db://rows{?page}", "db://rows?table=users"),
        ("db://rows{?page}", "db://rows?page=2&table=users"),
        ("db://rows?page=1{&size}", "db://rows?page=1&page=2"),
        ("db://rows{;page}", "db://rows;admin"),
        # Longer than the template has it
        ("db://{table:3}", "db://abcd"),
        ("db://{table:3}", "db://%C3%A4bcd"),
        ("db://{table:3}/{id}", "db://abcd/7"),
        ("db://{+path:3}", "db://a/b/c"),
        ("db://{a:1,b:3}", "db://abcd"),
        ("db://{a:1,b:3}", "db://abc,a"),
        ("db://{a:1,b:3}", "db://a,b,c"),
        ("db://x{/a:1,b:3}", "db://x/abc/a"),
        ("db://x{.a:3}", "db://x.abcd"),
        ("db://x{.a:3}", "db://x.a.bc"),
        ("db://{+path:3}", "db://a,bc"),
        ("db://x{/a:3}", "db://x/a/b"),
        ("db://x{#a:3}", "db://x#abcd"),
        ("db://x{?a:3,b}", "db://x?a=abcd&b=1"),
        ("db://x?b=1{&a:3}", "db://x?b=1&a=abcd"),
        ("db://x{;a:3}", "db://x;a=abcd"),
        # Segments that lead upwards for a vendor that takes the whole address for a path
        ("file:///docs/{+path}", "file:///docs/../secret"),
        ("file:///docs/{+path}", "file:///docs/?/../../secret"),
        ("file:///docs/{+path}", "file:///docs/a#/%2e%2E/secret"),
        ("file:///docs/a{#part}", "file:///docs/a#/%252e%252e/secret"),
        ("file:///docs/{name}", "file:///docs/a%2F..%2Fsecret"),
        ("file:///notes.md", "file:///notes.md"),
        ("{+any}", "file:///notes.md"),
        ("{scheme}://x", "file://x"),
        ("file:///{a}}", "file:///x}"),
    ],
)
def test_not_made_of(template: str, address: str) -> None:
    assert not is_made_of(template, address)


def test_bounds() -> None:
    assert is_made_of("a:{+x}", "a:" + "b" * (MAX_ADDRESS_CHARACTERS - 2))
    assert not is_made_of("a:{+x}", "a:" + "b" * (MAX_ADDRESS_CHARACTERS - 1))
    assert fault_in("a:" + "{x}" * (MAX_EXPRESSIONS + 1))
    assert fault_in("a:{x}" + "b" * MAX_TEMPLATE_CHARACTERS)
    assert fault_in("{+any}")
    assert fault_in("1a:{x}")
    assert fault_in("a:{x")
    assert not is_template("a:b")


@given(st.text("a:/{}+?&#.", max_size=60), st.text("a:/?&#.", max_size=60))
def test_nothing_is_made_without_the_first_literal(template: str, address: str) -> None:
    if is_made_of(template, address):
        assert address.startswith(template.partition("{")[0])


def test_the_worst_template_takes_a_millisecond_or_two() -> None:
    template = "a:" + "{x}b" * MAX_EXPRESSIONS
    address = "a:" + "a" * (MAX_ADDRESS_CHARACTERS - 2)
    began = time.perf_counter()
    for _ in range(100):
        is_made_of(template, address)
    assert time.perf_counter() - began < 1
