"""Pure: times and records as the platforms write them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_lines = msgspec.json.Encoder()


def epoch_nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def epoch_seconds(moment: datetime) -> float:
    """With milliseconds, which rows have."""
    return (moment - _EPOCH) // timedelta(milliseconds=1) / 1000


def json_lines(records: Iterable[Any]) -> bytes:
    """One JSON value a line; the last line ends too."""
    return _lines.encode_lines(list(records))


def json_text(value: Any) -> str:
    return _lines.encode(value).decode()
