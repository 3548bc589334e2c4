"""Pure: `Mcp-Param-*` headers, which repeat arguments that a tool's schema marks with `x-mcp-header`.

Spec: MCP 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from proxy.protocol.json_schema import DATA
from proxy.protocol.modern.headers import PARAM_PREFIX, McpHeaders, decoded, encoded

ANNOTATION: Final = "x-mcp-header"
MAX_CHARACTERS: Final = 16 * 1024  # of the arguments that a call repeats: servers take no longer heads
_MENTIONED: Final = ANNOTATION.encode()
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_MAPS_OF_SCHEMAS: Final = frozenset({"$defs", "definitions", "patternProperties", "dependentSchemas"})
_Path: TypeAlias = tuple[str, ...] | None

_is_token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_as_decimal = re.compile(r"(-?[0-9]{1,400})(?:\.0+)?").fullmatch


class ParamHeader(msgspec.Struct, frozen=True):
    """`name`: of the header, as annotated. `path`: the members that lead to the argument."""

    name: str
    path: tuple[str, ...]
    type: str


class TooLong(ValueError):
    """The arguments are too long to be repeated in headers."""


class _Definition(msgspec.Struct):
    input_schema: Any = msgspec.field(name="inputSchema", default=None)


_definitions = msgspec.json.Decoder(_Definition)


def contradiction(definition: bytes, arguments: Mapping[str, Any], headers: McpHeaders) -> str | None:
    """The fault of the `Mcp-Param-*` headers of a call, in words. `definition`: the tool's JSON as listed.

    A schema with an invalid annotation asks for no header: clients leave such a tool out.
    """
    if _MENTIONED not in definition:
        return None
    for each in annotated(_definitions.decode(definition).input_schema) or ():
        fault = _fault(each, _value_at(arguments, each.path), headers)
        if fault is not None:
            return f"{_spelled(each)} {fault}"
    return None


def of_call(definition: bytes, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The `Mcp-Param-*` headers of a call of a tool with this definition, as JSON. Raises: TooLong."""
    if _MENTIONED not in definition:
        return {}
    found: dict[str, str] = {}
    left = MAX_CHARACTERS
    for each in annotated(_definitions.decode(definition).input_schema) or ():
        text = _as_text(_value_at(arguments, each.path))
        if text is not None:
            left -= len(text)
            if left < 0:
                raise TooLong(f"The arguments that headers repeat have more than {MAX_CHARACTERS} characters.")
            found[_spelled(each)] = encoded(text)
    return found


def is_valid(definition: bytes) -> bool:
    """Whether clients may use the tool. Those with an invalid annotation must leave it out."""
    return _MENTIONED not in definition or annotated(_definitions.decode(definition).input_schema) is not None


def annotated(schema: object) -> tuple[ParamHeader, ...] | None:
    """The annotated arguments of an input schema; None if an annotation is invalid."""
    found: dict[str, ParamHeader] = {}
    for path, node in _annotated_nodes(schema, ()):
        name, kind = node[ANNOTATION], node.get("type")
        if not path or type(name) is not str or not _is_token(name) or type(kind) is not str or kind not in _TYPES:
            return None
        if name.lower() in found:
            return None
        found[name.lower()] = ParamHeader(name, path, kind)
    return tuple(found.values())


def _annotated_nodes(node: Any, path: _Path) -> Iterator[tuple[_Path, dict[str, Any]]]:
    """Schemas with an annotation; `path` is None below anything but `properties`."""
    if type(node) is list:
        for each in node:
            yield from _annotated_nodes(each, None)
    if type(node) is not dict:
        return
    if ANNOTATION in node:
        yield path, node
    for key, value in node.items():
        if key == "properties" and type(value) is dict:
            for name, each in value.items():
                yield from _annotated_nodes(each, None if path is None else (*path, name))
        elif key in _MAPS_OF_SCHEMAS and type(value) is dict:
            for each in value.values():
                yield from _annotated_nodes(each, None)
        elif key not in DATA:
            yield from _annotated_nodes(value, None)


def _value_at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = arguments
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _fault(header: ParamHeader, value: Any, headers: McpHeaders) -> str | None:
    key = PARAM_PREFIX + header.name.lower()
    expected = _as_text(value)
    if key not in headers:
        return None if expected is None else "is missing."
    raw = headers[key]
    said = None if raw is None else decoded(raw)
    if said is None:
        return "is malformed or was sent twice."
    if expected is None or not _are_equal(said, expected, value, header.type):
        return "does not say what the body says."
    return None


def _as_text(value: Any) -> str | None:
    """As a header has it; None for a value that no header repeats."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int) else None


def _are_equal(said: str, expected: str, value: Any, kind: str) -> bool:
    if kind == "integer" and isinstance(value, int | float) and not isinstance(value, bool):
        number = _as_decimal(said)
        return number is not None and int(number[1]) == int(expected)
    return said == expected


def _spelled(header: ParamHeader) -> str:
    return f"Mcp-Param-{header.name}"
