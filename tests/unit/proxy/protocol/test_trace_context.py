"""W3C Trace Context: valid headers are read, all others are ignored."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.protocol.trace_context import Parent, parse_parent, render_traceparent, take_parent

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("text", "is_sampled"),
    [
        (GOOD, True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"cc-{TRACE}-{SPAN}-01-x", True),
    ],
)
def test_a_good_one_names_the_callers_span(text: str, is_sampled: bool) -> None:
    assert parse_parent(text) == Parent(int(TRACE, 16), int(SPAN, 16), is_sampled)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        7,
        [GOOD],
        GOOD + "-more",
        GOOD.upper(),
        f" {GOOD}",
        f"{GOOD}\n",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-0g",
    ],
)
def test_a_bad_one_is_ignored(text: object) -> None:
    assert parse_parent(text) is None


@pytest.mark.parametrize(
    ("state", "kept"), [("a=1,b=2", "a=1,b=2"), (None, ""), (7, ""), ("x" * 513, ""), ("a=1\r\nX: y", ""), ("a=ü", "")]
)
def test_a_state_is_kept_if_it_is_short_and_printable(state: object, kept: str) -> None:
    parent = parse_parent(GOOD, state)
    assert parent is not None
    assert parent.state == kept


@pytest.mark.parametrize(("sent", "is_good"), [(GOOD, True), ("nonsense", False), ({"a": 1}, False)])
def test_the_callers_context_never_stays_in_its_meta(sent: object, is_good: bool) -> None:
    meta: dict[str, Any] = {"traceparent": sent, "tracestate": "a=1", "com.example/note": "kept"}
    assert (take_parent(meta) is not None) is is_good
    assert meta == {"com.example/note": "kept"}


def test_what_is_rendered_is_read_again() -> None:
    for is_sampled in (True, False):
        assert parse_parent(render_traceparent(5, 6, is_sampled=is_sampled)) == Parent(5, 6, is_sampled)
