"""Addresses inside results, and all that stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.protocol.item_results import of_prompt, of_read, of_tool, with_exposed_app

MEMBERS = ["type", "uri", "resource", "content", "contents", "messages"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["resource", "resource_link", "uri", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_links_and_embedded_resources_get_the_prefix() -> None:
    own = (
        b'{"content": [{"type":"text", "text":"test://a \\"resource\\""}, {"type":"resource_link","uri":"test://a","n":1.50},'
        b' {"type":"resource","resource":{"uri":"ui://b","text":"caf\\u00e9"}}], "isError":false, "more":1e2}'
    )
    changed = of_tool(own, "acme")
    assert changed == (
        b'{"content":[{"type":"text", "text":"test://a \\"resource\\""},'
        b'{"type":"resource_link","uri":"acme+test://a","n":1.50},'
        b'{"type":"resource","resource":{"uri":"ui://acme+b","text":"caf\\u00e9"}}],"isError":false,"more":1e2}'
    )


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "plain"}]},
        {
            "content": [{"type": "text", "text": '"resource'}],
            "structuredContent": {"type": "resource_link", "uri": "a:b"},
        },
        {"content": [{"type": "resource_link", "uri": 7}, {"type": "resource", "resource": []}, 3]},
        {"content": {"type": "resource_link", "uri": "a:b"}},
        {"content": [{"type": "resource_link", "uri": "a:b"}] * 10_001},
    ],
    ids=range(5),
)
def test_results_without_addresses_are_the_same_object(result: Any) -> None:
    own = raw(result)
    assert of_tool(own, "acme") is own


def test_messages_and_contents() -> None:
    block = {"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}
    got = json.loads(of_prompt(raw({"messages": [{"role": "user", "content": block}]}), "acme"))
    assert got["messages"][0]["content"]["resource"] == {"uri": "acme+a:b", "blob": "AA=="}
    read = json.loads(of_read(raw({"contents": [{"uri": "a:b", "text": "x"}, {"uri": "a:c"}, {}]}), "9acme"))
    assert read["contents"] == [{"uri": "v.9acme+a:b", "text": "x"}, {"uri": "v.9acme+a:c"}, {}]


@pytest.mark.parametrize(
    "kind", [b"\\u0072esource_link", b"r\\u0065source_link", b"resource\\u005flink", b"resourc\\u0065_link"]
)
def test_a_type_written_with_escapes_is_the_same_type(kind: bytes) -> None:
    """Otherwise a vendor's link would lead to another vendor, whose prefix it begins with."""
    block = b'{"type":"%b","uri":"other+test://a"}' % kind
    assert b'"acme+other+test://a"' in of_tool(b'{"content":[%b]}' % block, "acme")
    assert b'"acme+other+test://a"' in of_prompt(b'{"messages":[{"role":"user","content":%b}]}' % block, "acme")


@given(JSON)
def test_any_result_stays_json(result: Any) -> None:
    for change in (of_tool, of_prompt, of_read):
        json.loads(change(raw(result), "acme"))


def test_the_app_of_a_tool() -> None:
    definition = {"name": "t", "_meta": {"ui": {"resourceUri": "ui://b", "visibility": ["app"]}, "own": 1}}
    assert with_exposed_app(definition, "acme")["_meta"] == {
        "ui": {"resourceUri": "ui://acme+b", "visibility": ["app"]},
        "own": 1,
    }
    assert with_exposed_app({"_meta": {"ui/resourceUri": "ui://b"}}, "acme") == {
        "_meta": {"ui/resourceUri": "ui://acme+b"}
    }


@pytest.mark.parametrize("meta", [None, [], {}, {"ui": []}, {"ui": {"resourceUri": 7}}, {"ui/resourceUri": None}])
def test_tools_without_an_app_are_the_same_object(meta: Any) -> None:
    definition = {"name": "t", "_meta": meta}
    assert with_exposed_app(definition, "acme") is definition
