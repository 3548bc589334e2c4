"""Results of vendors with what the revision asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.protocol import log_levels
from proxy.protocol.modern import results, subscriptions

SERVER = {"name": "gateway", "version": "1"}
OWN = {"resultType": "complete", "_meta": {results.SERVER_INFO: SERVER}}
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
NAMES = st.sampled_from(["content", "structuredContent", "isError", "resultType", "_meta", "x", ""])


def twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, none of whose members is given twice."""
    assert len({name for name, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


@settings(deadline=None)
@given(st.dictionaries(NAMES, VALUES | st.dictionaries(st.sampled_from(["a", "content"]), VALUES)), st.booleans())
def test_a_spliced_result_is_a_re_encoded_one(result: dict[str, Any], is_spaced: bool) -> None:
    raw = json.dumps(result, indent=2 if is_spaced else None).encode()
    meta = result.get("_meta")
    expected = {
        **result,
        **OWN,
        "content": [] if result.get("content") is None else result["content"],
        "_meta": {**(meta if isinstance(meta, dict) else {}), **OWN["_meta"]},  # type: ignore[dict-item]
    }
    assert json.loads(b"".join(results.of_tool(raw, SERVER)), object_pairs_hook=twice) == expected


@pytest.mark.parametrize(
    ("raw", "end"),
    [
        (b'{"content":[ ] , "n":1.50}', b',"content":[ ] , "n":1.50}'),
        (b'{ "structuredContent" : 1e2}', b'"content":[],"structuredContent" : 1e2}'),
        (b"{ }", b'"content":[]}'),
    ],
)
def test_other_members_keep_their_bytes(raw: bytes, end: bytes) -> None:
    assert b"".join(results.of_tool(raw, SERVER)).endswith(end)


def test_a_list_is_never_kept() -> None:
    before, after = results.around_list(SERVER, {"gateway/unavailable": {"acme": "vendor_timeout"}})
    assert json.loads(before + b'{"name":"a"}' + after) == {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"gateway/unavailable": {"acme": "vendor_timeout"}, results.SERVER_INFO: SERVER},
        "tools": [{"name": "a"}],
    }


@pytest.mark.parametrize(
    ("asked", "lists", "addresses"),
    [
        ({}, set(), []),
        ({"toolsListChanged": True, "resourceSubscriptions": ["a", "b"]}, {"tools"}, ["a", "b"]),
        ({"promptsListChanged": True, "resourcesListChanged": True}, {"prompts", "resources"}, []),
        ({"other": 1}, set(), []),
    ],
)
def test_a_filter(asked: object, lists: set[str], addresses: list[str]) -> None:
    assert subscriptions.wanted(asked) == (lists, addresses)


@pytest.mark.parametrize("wanted", [None, [], "x", {"toolsListChanged": "yes"}, {"resourceSubscriptions": [1]}])
def test_no_filter(wanted: object) -> None:
    assert subscriptions.wanted(wanted) is None


@pytest.mark.parametrize(
    ("raw", "wanted", "expected"),
    [
        (b'{"params":{"level":"warning"}}', "warning", True),
        (b'{"params":{"level":"emergency"}}', "warning", True),
        (b'{"params":{"level":"notice"}}', "warning", False),
        (b'{"params":{"level":"loud"}}', "debug", False),
        (b'{"params":{}}', "debug", False),
        (b'{"params":5}', "debug", False),
        (b'{"params":{"level":5}}', "debug", False),
        (b"x", "debug", False),
    ],
)
def test_levels_of_log_messages(raw: bytes, wanted: str, expected: bool) -> None:
    assert log_levels.reaches(raw, wanted) is expected
