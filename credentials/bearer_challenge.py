"""Pure: the challenge in a vendor's WWW-Authenticate header. Spec: RFC 6750 3, RFC 9728 5.1"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_CHARACTERS = 4_000
MAX_SCOPE_CHARACTERS = 1_000
_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCOPES = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")


def parameters(header: str) -> Mapping[str, str]:
    """By name in lower case; the first value of each."""
    found: dict[str, str] = {}
    for name, quoted, bare in _PARAMETER.findall(header[:MAX_CHARACTERS]):
        found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or bare)
    return found


def scopes_in(value: object, *, at_most: int = MAX_CHARACTERS) -> str | None:
    """Scopes separated by spaces; None for anything else."""
    is_scopes = isinstance(value, str) and len(value) < at_most and _SCOPES.fullmatch(value) is not None
    return str(value) if is_scopes else None


def scopes_wanted(header: str | None) -> str:
    """Of a 403: the scopes that the call needs and the token lacks; empty if the vendor names none."""
    if not header:
        return ""
    found = parameters(header)
    if found.get("error") != "insufficient_scope":
        return ""
    return scopes_in(found.get("scope"), at_most=MAX_SCOPE_CHARACTERS) or ""
