from __future__ import annotations

import pytest

from proxy.calls.seen_lists import Seen, SeenList, has_changed

KNOWN = SeenList(b"place", "rights", b"mark")


@pytest.mark.parametrize(
    ("before", "now", "announced", "changed"),
    [
        ({"a": KNOWN}, {"a": KNOWN}, set(), False),
        ({}, {"a": KNOWN}, set(), True),
        ({"a": KNOWN}, {}, set(), True),
        ({"a": KNOWN}, {"a": SeenList(b"place", "fewer", b"mark")}, set(), True),
        ({"a": KNOWN}, {"a": SeenList(b"place", "rights", b"other")}, set(), True),
        # A renewed token has another place: the list is what it was.
        ({"a": KNOWN}, {"a": SeenList(b"another", "rights", b"mark")}, set(), False),
        # A list that becomes known, or is forgotten, is the same list.
        ({"a": SeenList(b"place", "rights")}, {"a": KNOWN}, set(), False),
        ({"a": KNOWN}, {"a": SeenList(b"place", "rights")}, set(), False),
        ({"a": KNOWN}, {"a": KNOWN}, {b"place"}, True),
        ({"a": KNOWN}, {"a": KNOWN}, {b"of another credential"}, False),
        # It was told when the vendor announced it.
        ({"a": SeenList(b"place", "rights", b"mark", True)}, {"a": SeenList(b"place", "rights", b"new")}, set(), False),
    ],
)
def test_what_a_caller_should_ask_for_again(before: Seen, now: Seen, announced: set[bytes], changed: bool) -> None:
    assert has_changed(before, now, announced) is changed
