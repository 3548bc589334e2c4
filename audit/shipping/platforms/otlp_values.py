"""Pure: attributes and values in OTLP's JSON encoding.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/common/v1/common.proto
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_INT64 = range(-(2**63), 2**63)


def key_values(pairs: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": any_value(value)} for name, value in pairs.items()]


def any_value(value: object) -> dict[str, Any]:
    """An AnyValue. Null is an empty text."""
    match value:
        case None:
            # An AnyValue without a kind would be null, but collectors in Rust refuse the whole request for it.
            return {"stringValue": ""}
        case bool():
            return {"boolValue": value}
        case int() if value in _INT64:
            return {"intValue": str(value)}  # proto3's JSON writes 64-bit integers as texts
        case float() if math.isfinite(value):
            return {"doubleValue": value}
        case Mapping():
            return {"kvlistValue": {"values": key_values(value)}}
        case list() | tuple():
            return {"arrayValue": {"values": [any_value(inner) for inner in value]}}
        case _:
            return {"stringValue": str(value)}
