"""The capabilities that a vendor declares."""

from __future__ import annotations

import pytest

from proxy.protocol.replies import declared

KNOWN = {"resources", "prompts"}


def test_declared_capabilities_that_the_gateway_knows() -> None:
    raw = b'{"capabilities": {"resources": {"subscribe": true}, "tools": {}, "prompts": null}}'
    assert declared(raw, KNOWN) == {"resources"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (b'{"subscribe": true}', {"resources", "resources.subscribe"}),
        (b'{"subscribe": false, "listChanged": true}', {"resources"}),
        (b'{"subscribe": "true"}', {"resources"}),
        (b'{"subscribe": 1}', {"resources"}),
        (b"{}", {"resources"}),
        (b"true", set()),
        (b'["subscribe"]', set()),
    ],
)
def test_a_member_of_a_capability_must_be_true(resources: bytes, expected: set[str]) -> None:
    raw = b'{"capabilities": {"resources": %b}}' % resources
    assert declared(raw, {*KNOWN, "resources.subscribe"}) == expected


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"capabilities": 1}', b'{"capabilities": {"prompts": 1}}'])
def test_anything_else_declares_nothing(raw: bytes) -> None:
    assert declared(raw, KNOWN) == frozenset()
