"""Pure: the scopes `mcp`, `mcp:all` and `mcp:<vendor>`, and which vendors they reach.

A scope only narrows: what a subject may use is looked up at every call, never read from its token.
"""

from __future__ import annotations

import re

ANY = "mcp"
ALL = "mcp:all"
EVERYTHING = frozenset({ANY, ALL})
MAX_SCOPES = 50  # a token that names more would outgrow the header it travels in

_VENDOR_SCOPE = re.compile(r"mcp:([a-z0-9][a-z0-9-]{0,30})")


def parse(text: str) -> tuple[str, ...]:
    """The scopes in `text`, each once, in the order they were asked for.

    Raises: ValueError when one is not spelled like a scope of ours, or when there are too many.   Spec: D122
    """
    wanted = tuple(dict.fromkeys(text.split(" "))) if text else ()
    wanted = tuple(scope for scope in wanted if scope)
    if len(wanted) > MAX_SCOPES:
        raise ValueError(f"more than {MAX_SCOPES} scopes")
    if not all(map(registered, wanted)):
        raise ValueError("a scope is unknown")
    return wanted


def registered(scope: str) -> bool:
    """Whether `scope` is spelled like one of ours; whether its vendor exists is for the catalog to say."""
    return scope in EVERYTHING or vendor_of(scope) is not None


def vendor_of(scope: str) -> str | None:
    """The vendor that `scope` narrows to, or None when it narrows to none."""
    match = None if scope in EVERYTHING else _VENDOR_SCOPE.fullmatch(scope)
    return None if match is None else match[1]


def for_vendor(vendor: str) -> str:
    """The scope that reaches this one vendor."""
    return f"mcp:{vendor}"


def covers(scopes: frozenset[str], vendor: str) -> bool:
    """Whether a token with `scopes` may be used for `vendor`. `mcp` means the same as `mcp:all`. Spec: D136"""
    return not EVERYTHING.isdisjoint(scopes) or for_vendor(vendor) in scopes
