"""The revision of a message, for every pair of a body and a header."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.protocol import jsonrpc, versions
from proxy.protocol.modern import headers, requests, revision
from proxy.protocol.modern.errors import Refusal
from proxy.protocol.modern.requests import ModernRequest

KEY = revision.PROTOCOL_VERSION
MODERN = revision.SERVED[0]
EARLIER = versions.NEWEST
CLAIMS = [..., None, 7, "", "2031-01-01", MODERN, *versions.NEWEST_FIRST]
HEADERS = [None, "", "2031-01-01", MODERN, *versions.NEWEST_FIRST]


def message(method: str, claimed: Any, message_id: Any = 1) -> jsonrpc.Message:
    """A request, or a notification without an id."""
    meta = {} if claimed is ... else {KEY: claimed, requests.CLIENT_CAPABILITIES: {}}
    body = {"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}
    return jsonrpc.parse_message(body if message_id is None else {**body, "id": message_id})


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("claimed", CLAIMS, ids=str)
@pytest.mark.parametrize("method", ["tools/call", "initialize"])
def test_the_body_decides_before_the_header(method: str, claimed: Any, header: str | None) -> None:
    is_silent = claimed is ... or claimed in versions.NEWEST_FIRST
    expected = (header == MODERN and method != "initialize") if is_silent else True
    assert revision.is_modern(message(method, claimed), header) is expected


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(
    "body", [{"result": {}}, {"method": 5}, {"id": 1, "method": "x", "params": []}, {"id": None, "method": "x"}]
)
def test_a_message_without_params_goes_by_its_header(body: dict[str, Any], header: str | None) -> None:
    assert revision.is_modern(jsonrpc.parse_message({"jsonrpc": "2.0", **body}), header) is (header == MODERN)


@pytest.mark.parametrize("meta", [None, [], "x", 5, [KEY]])
def test_a_meta_that_is_no_object_claims_nothing(meta: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": meta}}
    assert not revision.is_modern(jsonrpc.parse_message(body), EARLIER)


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        (None, MODERN, True),
        (None, EARLIER, False),
        ([], None, False),
        ([17, None, {"params": 5}, {"params": {"_meta": 5}}], None, False),
        ([{"params": {"_meta": {KEY: EARLIER}}}], EARLIER, False),
        ([{}, {"params": {"_meta": {KEY: MODERN}}}], EARLIER, True),
        ([{"params": {"_meta": {KEY: None}}}], None, True),
    ],
)
def test_a_batch_is_modern_by_any_of_its_entries(body: object, header: str | None, expected: bool) -> None:
    assert revision.is_modern_body(body, header) is expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([MODERN, EARLIER, KEY]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["_meta", KEY, requests.CLIENT_CAPABILITIES, "name", "params"]), inner)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    JSON,
    JSON,
    st.sampled_from(["tools/call", "initialize", "x"]),
    st.dictionaries(st.sampled_from([headers.VERSION, headers.METHOD, headers.NAME]), st.none() | st.text(max_size=5)),
)
def test_any_message_is_read_or_refused(params: Any, message_id: Any, method: str, said: Any) -> None:
    body = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
    read = requests.read_message(jsonrpc.parse_message(body), said)
    assert isinstance(read, ModernRequest | Refusal)
    if isinstance(read, Refusal):
        assert read.status == 400
        assert b'"id":null' not in read.body
    else:
        assert said[headers.VERSION] == MODERN
