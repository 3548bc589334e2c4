"""Pure: the shapes of a catalog file's tables, and each key that does not fit."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gateway.catalog.key_lines import Path
from gateway.catalog.vendor import (
    TOOL_NAME_MAX_CHARACTERS,
    CredentialField,
    HeaderTemplate,
    OAuthSettings,
    ToolOverride,
    Validation,
    Vendor,
    vendor_from_json,
)
from gateway.lib.text import clean_name

# The message at each faulty place, for all places of a file, so that they can be fixed in one pass.
Faults = dict[Path, str]
_WORDS = {
    "str": "a string",
    "bool": "true or false",
    "bool | null": "true or false",
    "int": "a number",
    "float": "a number",
    "int | float": "a number",
    "int | null": "a whole number",
    "array": "a list",
    "object": "a table",
    "object | null": "a table",
}
# A message of msgspec: Expected `str`, got `int` - at `$[0].fields[2].name`
_MESSAGE = re.compile(r"(.*) - at `\$\[0\]([^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_KEY = re.compile(r"Object (?:missing required|(contains unknown)) field `(.*)`", re.DOTALL)
_TYPES = re.compile(r"Expected `([^`]*)`(?: of length <= (\d+)|, got `([^`]*)`)")
_CHARACTERS = {
    "name": 100,
    "label": 100,
    "options": 100,
    "category": 60,
    "placeholder": 200,
    "tool": TOOL_NAME_MAX_CHARACTERS,
}
_CHARACTERS |= {"issuer": 2000, "scopes": 200, "url": 2000, "docs_url": 2000, "value": 2000}
_CHARACTERS_OF_OTHERS = 500


class _Header(HeaderTemplate, frozen=True, forbid_unknown_fields=True):
    pass


class _Field(CredentialField, frozen=True, forbid_unknown_fields=True):
    pass


class _Validation(Validation, frozen=True, forbid_unknown_fields=True):
    pass


class _Tool(ToolOverride, frozen=True, forbid_unknown_fields=True):
    pass


class _OAuth(OAuthSettings, frozen=True, forbid_unknown_fields=True):
    scopes: Annotated[tuple[str, ...], Meta(max_length=50)] = ()


class _Vendor(Vendor, frozen=True, forbid_unknown_fields=True):
    headers: Annotated[tuple[_Header, ...], Meta(max_length=32)] = ()
    fields: Annotated[tuple[_Field, ...], Meta(max_length=32)] = ()
    validation: _Validation | None = None
    oauth: _OAuth | None = None
    tools: dict[str, Any] = {}  # fitted one by one: a message of msgspec does not have the key of a dict


class _File(msgspec.Struct, forbid_unknown_fields=True):
    vendor: Annotated[list[dict[str, Any]], Meta(max_length=1000)] = []


def read_vendors(data: dict[str, Any], faults: Faults) -> tuple[Vendor, ...]:
    """The vendors of a catalog file as `tomllib` gives it, in its order.

    Each fault is recorded. A faulty value counts as absent (a faulty text as empty), so one pass finds all faults.
    """
    file = _fitted(_cleaned(data, (), faults), tuple[_File], (), faults)
    return tuple(_vendor(each, ("vendor", number), faults) for number, each in enumerate(file.get("vendor", ())))


def _vendor(table: dict[str, Any], path: Path, faults: Faults) -> Vendor:
    fitted = _fitted(table, tuple[_Vendor], path, faults)
    tools = fitted.get("tools", {})
    tools |= {name: _fitted(tools[name], tuple[_Tool], (*path, "tools", name), faults) for name in tools}
    return vendor_from_json(fitted)


def _cleaned(value: Any, path: Path, faults: Faults) -> Any:
    """A copy with all texts trimmed and in NFC; the arguments of a vendor's tool stay as they are."""
    if isinstance(value, dict):
        return {k: each if k == "arguments" else _cleaned(each, (*path, k), faults) for k, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each, (*path, number), faults) for number, each in enumerate(value)]
    if not isinstance(value, str):
        return value
    place = _without_number(path)
    try:
        return clean_name(
            value, max_characters=_CHARACTERS.get(str(place[-1]), _CHARACTERS_OF_OTHERS), allow_empty=True
        )
    except ValueError as error:
        faults.setdefault(place, str(error))
        return ""


def _fitted(
    table: dict[str, Any], shape: type[tuple[msgspec.Struct, ...]], path: Path, faults: Faults
) -> dict[str, Any]:
    """Remove or blank what msgspec refuses, one fault at a time, until the table fits; record each fault."""
    while True:
        try:
            msgspec.convert((table,), shape, strict=True)
        except msgspec.ValidationError as error:
            message, steps = _place(str(error))
            faults.setdefault((*path, *steps), _in_words(message, (*path, *steps)))
            if not steps:
                table = {}
                continue
            holder: Any = table
            for step in steps[:-1]:
                holder = holder[step]
            if message.startswith(("Object missing", "Expected `str`")):
                holder[steps[-1]] = ""
            else:
                del holder[steps[-1]]
        else:
            return table


def _place(error: str) -> tuple[str, Path]:
    """A message of msgspec and the key that it is about, from the table."""
    [(message, where)] = _MESSAGE.findall(error)
    steps = tuple(int(number) if number else name for name, number in _STEP.findall(where))
    key = _KEY.fullmatch(message)
    return message, (*steps, key[2]) if key else _without_number(steps)


def _without_number(path: Path) -> Path:
    # A fault of one element is a fault of the list.
    return path[:-1] if path and isinstance(path[-1], int) else path


def _in_words(message: str, place: Path) -> str:
    if key := _KEY.fullmatch(message):
        return "is not a key of the catalog" if key[1] else "is missing"
    [(expected, most, got)] = _TYPES.findall(message)
    if most:
        return f"may have at most {most} entries"
    if place[-1] in {"options", "scopes", "connections"}:
        return "must be a list of strings, none of them empty"
    if place[-1] in {"vendor", "headers", "fields"}:
        return f"must be a list of tables, written [[{'.'.join(part for part in place if isinstance(part, str))}]]"
    return f"must be {_WORDS[expected]}, not {_WORDS.get(got, 'a date or time')}"
