"""The one writer of the headers about a limit."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from gateway.coordination.limit_headers import encoded, headers, refusal_in_bytes
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from tests.product import PACKAGES

ADMITTED = Admission(Rule("tools", limit=1000, window_s=3600), True, 900, 0, epochs=())
REFUSED = replace(ADMITTED, allowed=False, remaining=0, retry_after_s=17)


def test_both_forms_say_the_same() -> None:
    assert headers(ADMITTED) == {
        "RateLimit-Policy": '"tools";q=1000;w=3600',
        "RateLimit": '"tools";r=900;t=3600',
        "X-RateLimit-Limit": "1000",
        "X-RateLimit-Remaining": "900",
        "X-RateLimit-Reset": "3600",
    }
    for admission in (ADMITTED, REFUSED):
        text = {name.lower().encode(): value.encode() for name, value in headers(admission).items()}
        assert dict(encoded(admission)).items() <= text.items()


def test_only_a_refusal_says_when_to_come_back() -> None:
    assert "Retry-After" not in headers(ADMITTED)
    assert headers(REFUSED)["Retry-After"] == headers(REFUSED)["X-RateLimit-Reset"] == "17"


def test_a_window_of_bytes_is_given_in_bytes_unless_it_is_a_share() -> None:
    assert refusal_in_bytes(REFUSED, 64) == {
        "Retry-After": "17",
        "RateLimit-Policy": '"tools";q=64000;qu="content-bytes";w=3600',
        "RateLimit": '"tools";r=0;t=17',
    }
    assert refusal_in_bytes(replace(REFUSED, epochs=None), 64) == {"Retry-After": "17"}


def test_no_other_module_formats_them() -> None:
    root = Path(__file__).parents[3]
    writers = {
        str(path.relative_to(root))
        for folder in PACKAGES
        for path in (root / folder).rglob("*.py")
        if re.search(r";[qr]=[%{]", path.read_text())
    }
    assert writers == {"gateway/coordination/limit_headers.py"}
