"""Pure: the scopes `mcp`, `mcp:all` and `mcp:<vendor>`, and the vendors they reach.

A scope only narrows: a subject's permissions are looked up at every call, never read from its token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ANY = "mcp"
ALL = "mcp:all"
EVERYTHING = frozenset({ANY, ALL})
MAX_SCOPES = 50  # a token with more would outgrow its HTTP header

_VENDOR_SCOPE = re.compile(r"mcp:([a-z0-9][a-z0-9-]{0,30})")


def parse(text: str) -> tuple[str, ...]:
    """Raises: ValueError for a misspelled scope or more than MAX_SCOPES. Spec: D122"""
    wanted = tuple(dict.fromkeys(text.split(" "))) if text else ()
    wanted = tuple(scope for scope in wanted if scope)
    if len(wanted) > MAX_SCOPES:
        raise ValueError(f"more than {MAX_SCOPES} scopes")
    if not all(map(registered, wanted)):
        raise ValueError("a scope is unknown")
    return wanted


def registered(scope: str) -> bool:
    """Checks the spelling only; the catalog knows which vendors exist."""
    return scope in EVERYTHING or vendor_of(scope) is not None


def vendor_of(scope: str) -> str | None:
    """Returns None unless `scope` narrows to one vendor."""
    match = None if scope in EVERYTHING else _VENDOR_SCOPE.fullmatch(scope)
    return None if match is None else match[1]


def for_vendor(vendor: str) -> str:
    return f"mcp:{vendor}"


def common(granted: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The scopes that both sides give, in the order of `granted`; empty if no vendor is in both."""
    if not EVERYTHING.isdisjoint(asked):
        return list(granted)
    if not EVERYTHING.isdisjoint(granted):
        return list(asked)
    return [scope for scope in granted if scope in asked]


def covers(scopes: frozenset[str], vendor: str) -> bool:
    """`mcp` means the same as `mcp:all`. Spec: D136"""
    return not EVERYTHING.isdisjoint(scopes) or for_vendor(vendor) in scopes
