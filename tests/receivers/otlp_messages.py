"""The messages of OTLP logs and their JSON mapping, checked field by field.

Sources:
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
https://protobuf.dev/programming-guides/json/
github.com/open-telemetry/opentelemetry-proto: collector/logs/v1/logs_service.proto, logs/v1/logs.proto,
common/v1/common.proto, resource/v1/resource.proto (read at ac2c4b5d, August 2026). Fields that end in strindex are left
out: they are for profiles alone.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

DECIMAL, SIGNED = re.compile(r"0|[1-9]\d*"), re.compile(r"0|-?[1-9]\d*")
Check = Callable[[Any, str], None]


class NotOtlp(ValueError):
    """The sentence says where and why."""


def _need(holds: object, where: str, words: str) -> None:
    if not holds:
        raise NotOtlp(f"{where}: {words}")


def text(value: Any, where: str) -> None:
    _need(isinstance(value, str), where, "no text")


def boolean(value: Any, where: str) -> None:
    _need(isinstance(value, bool), where, "neither true nor false")


def double(value: Any, where: str) -> None:
    _need(isinstance(value, int | float) and not isinstance(value, bool), where, "no number")


def number_32(value: Any, where: str) -> None:
    _need(type(value) is int and 0 <= value < 2**32, where, "no number of 32 bits")


def fixed_64(value: Any, where: str) -> None:
    _need(isinstance(value, str) and DECIMAL.fullmatch(value) and int(value) < 2**64, where, "no text of 64 bits")


def int_64(value: Any, where: str) -> None:
    fits = isinstance(value, str) and SIGNED.fullmatch(value) and -(2**63) <= int(value) < 2**63
    _need(fits, where, "no text of a signed number of 64 bits")


def severity(value: Any, where: str) -> None:
    _need(type(value) is int and 1 <= value <= 24, where, "no number of a severity")


def base_64(value: Any, where: str) -> None:
    try:
        _need(isinstance(value, str) and base64.b64decode(value, validate=True) is not None, where, "no base64")
    except binascii.Error:
        raise NotOtlp(f"{where}: no base64") from None


def hex_of(size: int) -> Check:
    """An id of so many bytes, not all zero; empty where there is none."""

    def check(value: Any, where: str) -> None:
        fits = isinstance(value, str) and re.fullmatch(rf"([0-9a-fA-F]{{{2 * size}}})?", value)
        _need(fits and set(value) != {"0"}, where, f"no hex of {size} bytes")

    return check


def each(check: Check) -> Check:
    def check_list(value: Any, where: str) -> None:
        _need(isinstance(value, list), where, "no list")
        for place, item in enumerate(value):
            check(item, f"{where}[{place}]")

    return check_list


def message(fields: dict[str, Check], one_of: bool = False) -> Check:
    """An object of these fields alone. Receivers must ignore other names; here they are refused as mistakes."""

    def check(value: Any, where: str) -> None:
        _need(isinstance(value, dict), where, "no object")
        _need(not one_of or len(value) <= 1, where, "more than one value")
        for name, item in value.items():
            _need(name in fields, where, f"no field {name}")
            fields[name](item, f"{where}.{name}")

    return check


def any_value(value: Any, where: str) -> None:
    ANY_VALUE(value, where)


def key_values(value: Any, where: str) -> None:
    """Names are there, and each once."""
    each(message({"key": text, "value": any_value}))(value, where)
    names = [item.get("key", "") for item in value]
    _need(all(names), where, "a key is empty")
    _need(len(set(names)) == len(names), where, f"a key occurs twice in {names}")


ANY_VALUE = message(
    {
        "stringValue": text,
        "boolValue": boolean,
        "intValue": int_64,
        "doubleValue": double,
        "arrayValue": message({"values": each(any_value)}),
        "kvlistValue": message({"values": key_values}),
        "bytesValue": base_64,
    },
    one_of=True,
)
LOG_RECORD = message(
    {
        "timeUnixNano": fixed_64,
        "observedTimeUnixNano": fixed_64,
        "severityNumber": severity,
        "severityText": text,
        "body": any_value,
        "attributes": key_values,
        "droppedAttributesCount": number_32,
        "flags": number_32,
        "traceId": hex_of(16),
        "spanId": hex_of(8),
        "eventName": text,
    }
)
ENTITY = message({"schemaUrl": text, "type": text, "idKeys": each(text), "descriptionKeys": each(text)})
RESOURCE = message({"attributes": key_values, "droppedAttributesCount": number_32, "entityRefs": each(ENTITY)})
SCOPE = message({"name": text, "version": text, "attributes": key_values, "droppedAttributesCount": number_32})
SCOPE_LOGS = message({"scope": SCOPE, "logRecords": each(LOG_RECORD), "schemaUrl": text})
RESOURCE_LOGS = message({"resource": RESOURCE, "scopeLogs": each(SCOPE_LOGS), "schemaUrl": text})
EXPORT_REQUEST = message({"resourceLogs": each(RESOURCE_LOGS)})


def plain(value: dict[str, Any]) -> Any:
    """A checked AnyValue as the value it stands for."""
    for name, item in value.items():
        if name == "intValue":
            return int(item)
        if name == "arrayValue":
            return [plain(each) for each in item.get("values", [])]
        if name == "kvlistValue":
            return plain_keys(item.get("values", []))
        return item
    return None


def plain_keys(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: plain(pair.get("value", {})) for pair in pairs}
