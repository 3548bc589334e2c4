"""Pure: removes secrets from log lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

# Log calls pass no secrets; this is the second line of defence. It masks values under secret names at any depth, and
# secret-shaped parts of every text.
_NAMES = (
    r"(?:authorization|secret|password|passwd|token|api[-_]?key|credential|agent[-_]?key|private[-_]?key"
    r"|data[-_]?key|wrapped[-_]?key|user[-_]?code|device[-_]?code|code[-_]?verifier)s?"
)
SECRET_KEYS = re.compile(rf"(?i)^(?:(?:set-)?cookies?|.*{_NAMES})$")
MASK = "[hidden]"
_MAX_DEPTH = 6  # deeper values are masked whole
# The first group stays in the line: it says what was hidden.
_SECRET_SHAPES = (
    re.compile(r"()\b(?:cak|gwt)_[0-9A-Za-z]{6,}_[0-9A-Za-z]+"),
    re.compile(r"()\b(?:sk|rk)_(?:live|test)_[0-9A-Za-z]+"),
    re.compile(r"()\bwhsec_[0-9A-Za-z+/=]+"),
    re.compile(r"()\bhv[bsr]\.[0-9A-Za-z_-]{8,}"),
    re.compile(r"()\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]+"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[0-9A-Za-z._~+/=-]{8,}"),
    re.compile(r"(?i)([?&]code=)[^&\s\"']+"),
    re.compile(r"(?i)(\bcookie:\s{0,4})[^\r\n]+"),
    re.compile(rf"(?i)({_NAMES}\\?[\"']?\s{{0,4}}[=:]\s{{0,4}}\\?[\"'])[^\"'\\]+"),
    re.compile(rf"(?i)({_NAMES}=)[^&\s\"',;)}}\]]+"),
    re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{0,200}:)[^\s/]{1,200}(?=@)"),
    # Also as the return address of a sign-in.
    re.compile(r"(?i)((?:/|%2f)(?:invite|unsubscribe)(?:/|%2f))[^/?#&%\s\"']+"),
)


def mask_text(text: str) -> str:
    for shape in _SECRET_SHAPES:
        text = shape.sub(rf"\g<1>{MASK}", text)
    return text


def mask_event(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor."""
    for key, value in event.items():
        event[key] = _masked(key, value, 0)
    return event


def _masked(key: object, value: object, depth: int) -> object:
    if value is None or isinstance(value, bool):
        return value  # a log line may say whether there is a secret
    if isinstance(key, str) and SECRET_KEYS.match(key):
        return MASK
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return MASK  # the patterns match text only, and no log line needs bytes
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        if depth == _MAX_DEPTH:
            return MASK
        if isinstance(value, Mapping):
            return {each: _masked(each, inner, depth + 1) for each, inner in value.items()}
        inner_values = [_masked(None, inner, depth + 1) for inner in value]
        return tuple(inner_values) if isinstance(value, tuple) else inner_values
    if isinstance(value, int | float):
        return value
    return mask_text(repr(value))  # as the renderer writes it: the repr of a request has its query string
