"""JSON without what parsers disagree about: a name twice, NaN, text that is not UTF-8, half of a surrogate pair."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class NotJson(ValueError):
    """The sentence says why."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise NotJson(f"a name occurs twice in {names}")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


def text_of(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise NotJson(f"not UTF-8: {fault}") from None


def parsed(text: str) -> Any:
    """One JSON value with nothing around it but white space."""
    try:
        value = _DECODER.decode(text)
    except NotJson:
        raise
    except (ValueError, RecursionError) as fault:
        raise NotJson(str(fault)) from None
    _no_half_pairs(value)
    return value


def first_of(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at `at`, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except NotJson:
        raise
    except (ValueError, RecursionError) as fault:
        raise NotJson(str(fault)) from None
    _no_half_pairs(value)
    return value, end


def _no_half_pairs(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotJson("half of a surrogate pair") from None
