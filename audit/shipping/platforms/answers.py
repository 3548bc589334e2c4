"""Pure: the body of an answer as the JSON that the protocol promises."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from audit.shipping.platforms.exchange import Answer

T = TypeVar("T")


def json_of(answer: Answer, shape: type[T]) -> T | None:
    """None for anything else: a proxy's page, half an answer, JSON of another kind."""
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
