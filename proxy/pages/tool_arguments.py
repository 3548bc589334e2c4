"""The arguments of one run: a field per property of the tool's JSON Schema, or one JSON object.

Vendors write the schemas. A property whose schema says nothing simple gets a field for JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.utils.translation import gettext, ngettext

from gateway.lib import strict_json
from proxy.protocol.json_schema import ALTERNATIVES, SchemaDocument, as_dict, as_list, cut, flatten_root

# More arguments than these are given as JSON.
MAX_FIELDS = 60
MAX_OPTIONS = 200
MAX_HELP_CHARACTERS = 500
# Of the name of a form field, before the argument's own name.
PREFIX = "arg."
_SCALARS = (str, int, float, bool)


class Kind(StrEnum):
    TEXT = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    LINES = "lines"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Argument:
    """One property. `schema` has its references resolved; `options` are the values of a choice."""

    name: str
    kind: Kind
    schema: Mapping[str, Any]
    is_required: bool
    label: str
    help: str
    options: tuple[Any, ...] = ()

    @property
    def field(self) -> str:
        return PREFIX + self.name

    @property
    def default(self) -> str:
        """As typed; "" without one."""
        return "" if "default" not in self.schema else self.typed(self.schema["default"])

    @property
    def labelled_options(self) -> list[tuple[str, str]]:
        return [(self.typed(each), each if isinstance(each, str) else json.dumps(each)) for each in self.options]

    def typed(self, value: Any) -> str:
        """The value as a person would type it into the field."""
        match self.kind:
            case Kind.TEXT:
                return value if isinstance(value, str) else ""
            case Kind.LINES:
                return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in as_list(value))
            case Kind.JSON:
                return json.dumps(value, indent=2, ensure_ascii=False)
            case _:
                return json.dumps(value, ensure_ascii=False)


class Unreadable(ValueError):
    """The words say what the field needs."""


def arguments_of(definition: Mapping[str, Any]) -> list[Argument]:
    """In the schema's order, those that are required first. Empty where there are too many for a form."""
    schema, _ = flatten_root(as_dict(definition.get("inputSchema")))
    document = SchemaDocument(schema)
    found = document.argument_set(schema)
    if len(found.properties) > MAX_FIELDS:
        return []
    made = [_argument(document, name, each, name in found.required) for name, each in found.properties.items()]
    return sorted(made, key=lambda argument: not argument.is_required)


def read_form(arguments: list[Argument], typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values by argument, and by argument what is wrong. An empty field is left out."""
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for each in arguments:
        text = typed.get(each.field, "").replace("\r\n", "\n")
        if not text.strip():
            if each.is_required:
                faults[each.name] = gettext("This argument is required.")
            continue
        try:
            if "\0" in text:
                raise Unreadable(gettext("The NUL character can’t be sent."))
            values[each.name] = _READERS[each.kind](text)
            check_value(each, values[each.name])
        except Unreadable as fault:
            faults[each.name] = str(fault)
    return values, faults


def read_json(arguments: list[Argument], text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """As `read_form`, from one object. A fault of the whole text has the name ""."""
    if not text.strip():
        text = "{}"
    try:
        values = _json(text)
    except Unreadable as fault:
        return {}, {"": str(fault)}
    if not isinstance(values, dict):
        return {}, {"": gettext("Enter one JSON object.")}
    faults: dict[str, str] = {}
    for each in arguments:
        if each.name not in values:
            if each.is_required:
                faults[each.name] = gettext("This argument is required.")
            continue
        try:
            check_value(each, values[each.name])
        except Unreadable as fault:
            faults[each.name] = str(fault)
    return values, faults


def check_value(argument: Argument, value: Any) -> None:
    """Type and bounds, where the schema has plain ones. The vendor checks the rest. Raises: Unreadable."""
    schema = argument.schema
    if argument.kind is Kind.CHOICE:
        if not any(value == each and type(value) is type(each) for each in argument.options):
            raise Unreadable(gettext("Choose one of the values."))
        return
    _check_type(argument, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(schema, value)
    if isinstance(value, str):
        _check_length(schema, "minLength", "maxLength", len(value))
    if isinstance(value, list):
        _check_length(schema, "minItems", "maxItems", len(value))


def _check_type(argument: Argument, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits, words = {
        Kind.TEXT: (isinstance(value, str), gettext("Enter text.")),
        Kind.INTEGER: (is_number and value == int(value), gettext("Enter a whole number.")),
        Kind.NUMBER: (is_number, gettext("Enter a number.")),
        Kind.BOOLEAN: (isinstance(value, bool), gettext("Choose yes or no.")),
        Kind.LINES: (isinstance(value, list), gettext("Enter a list.")),
    }.get(argument.kind, (True, ""))
    if not fits:
        raise Unreadable(words)


def _check_bounds(schema: Mapping[str, Any], value: float) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int | float) and value < low:
        raise Unreadable(gettext("Enter %(bound)s or more.") % {"bound": low})
    if isinstance(high, int | float) and value > high:
        raise Unreadable(gettext("Enter %(bound)s or less.") % {"bound": high})


def _check_length(schema: Mapping[str, Any], least: str, most: str, length: int) -> None:
    low, high = schema.get(least), schema.get(most)
    of_text = least == "minLength"
    if isinstance(low, int) and length < low:
        words = (
            ngettext("Enter at least %(count)s character.", "Enter at least %(count)s characters.", low)
            if of_text
            else ngettext("Enter at least %(count)s entry.", "Enter at least %(count)s entries.", low)
        )
        raise Unreadable(words % {"count": low})
    if isinstance(high, int) and length > high:
        words = (
            ngettext("Enter at most %(count)s character.", "Enter at most %(count)s characters.", high)
            if of_text
            else ngettext("Enter at most %(count)s entry.", "Enter at most %(count)s entries.", high)
        )
        raise Unreadable(words % {"count": high})


def _argument(document: SchemaDocument, name: str, schema: Any, is_required: bool) -> Argument:
    resolved = _without_null(document, document.resolve(schema) or {})
    kind, options = _kind(document, resolved)
    title = resolved.get("title")
    described = resolved.get("description")
    return Argument(
        name,
        kind,
        resolved,
        is_required,
        cut(title, 100) if isinstance(title, str) and title else name,
        cut(described, MAX_HELP_CHARACTERS) if isinstance(described, str) else "",
        options,
    )


def _without_null(document: SchemaDocument, schema: dict[str, Any]) -> dict[str, Any]:
    """An alternative to null alone is the schema itself: leaving the field empty leaves the argument out."""
    for keyword in ALTERNATIVES:
        parts = [document.resolve(each) or {} for each in as_list(schema.get(keyword))]
        others = [each for each in parts if each.get("type") != "null"]
        if len(parts) == 2 and len(others) == 1:
            rest = {name: value for name, value in schema.items() if name != keyword}
            return {**others[0], **rest}
    return schema


def _kind(document: SchemaDocument, schema: Mapping[str, Any]) -> tuple[Kind, tuple[Any, ...]]:
    values = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
    options = tuple(each for each in values if each is not None)
    if options and len(options) <= MAX_OPTIONS and all(isinstance(each, _SCALARS) for each in options):
        return Kind.CHOICE, options
    match _type(schema):
        case "string":
            return Kind.TEXT, ()
        case "integer":
            return Kind.INTEGER, ()
        case "number":
            return Kind.NUMBER, ()
        case "boolean":
            return Kind.BOOLEAN, ()
        case "array" if _type(document.resolve(schema.get("items")) or {}) == "string":
            return Kind.LINES, ()
        case _:
            return Kind.JSON, ()


def _type(schema: Mapping[str, Any]) -> str:
    """The one type beside null; "" for several."""
    named = schema.get("type")
    types = [each for each in (named if isinstance(named, list) else [named]) if each != "null"]
    return types[0] if len(types) == 1 and isinstance(types[0], str) else ""


def _json(text: str) -> Any:
    try:
        return strict_json.loads(text.encode(errors="surrogatepass"), max_depth=settings.JSON_DEPTH)
    except (strict_json.StrictJSONError, UnicodeError) as fault:
        raise Unreadable(gettext("This isn’t valid JSON: %(reason)s.") % {"reason": fault}) from fault


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


_READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.TEXT: lambda text: text,
    Kind.LINES: _lines,
    Kind.INTEGER: _json,
    Kind.NUMBER: _json,
    Kind.BOOLEAN: _json,
    Kind.CHOICE: _json,
    Kind.JSON: _json,
}
