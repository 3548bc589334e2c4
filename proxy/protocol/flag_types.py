"""Pure: type and description of a command line flag, from its JSON schema."""

import json
from typing import Any, Final, NamedTuple

from proxy.protocol.json_schema import ALTERNATIVES, Schema, SchemaDocument, as_list, cut, strings, without

SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})

_TYPE_KEYWORDS: Final = ("type", "items", "prefixItems", "properties", "additionalProperties")
_MAX_UNIONS: Final = 5  # levels of anyOf and oneOf
_MAX_TYPES: Final = 20  # JSON Schema has seven
_MAX_LISTED_VALUES: Final = 50
_MAX_DESCRIPTION_LENGTH: Final = 1_000
_MAX_DEFAULT_LENGTH: Final = 200


class Kind(NamedTuple):
    """The values of one flag: its JSON type, a remark for its description, its only values."""

    type: str
    remark: str = ""
    values: tuple[str, ...] = ()


_JSON: Final = Kind("json", "(JSON)")
_STRING: Final = Kind("string")


def without_null(document: SchemaDocument, schema: object) -> Schema | None:
    """`schema` resolved; a choice between one schema and null becomes that schema. Spec: protocol.md F (3)"""
    resolved = document.resolve(schema)
    for _ in range(_MAX_UNIONS):
        keyword = next((each for each in ALTERNATIVES if resolved and as_list(resolved.get(each))), None)
        if resolved is None or keyword is None:
            break
        choices = _choices(document, resolved[keyword])
        if len(choices) != 1:
            break
        resolved = _merged(document, choices[0], without(resolved, (keyword,)))
    return resolved


def _merged(document: SchemaDocument, first: Schema | None, second: Schema | None) -> Schema | None:
    """Both in one, `second` wins; None if either is unknown or no steps are left."""
    return None if first is None or second is None or not document.affords(first, second) else {**first, **second}


def _choices(document: SchemaDocument, alternatives: list[Any]) -> list[Schema | None]:
    choices = [document.resolve(each) for each in alternatives]
    return [each for each in choices if each is None or not _is_null(each)]


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or _values(schema) == [None]


def kind_of(document: SchemaDocument, schema: Schema | None, unions: int = _MAX_UNIONS) -> Kind:
    """Spec: protocol.md F (3) · D113"""
    if schema is None or not unions:
        return _JSON
    values = _values(schema)
    if not document.affords(values):
        return _JSON
    if values:
        return _kind_of_values(values)
    for keyword in ALTERNATIVES:
        if as_list(schema.get(keyword)):
            shared: Schema = {each: schema[each] for each in _TYPE_KEYWORDS if each in schema}
            choices = _choices(document, schema[keyword])
            return _kind_of_union([kind_of(document, _merged(document, shared, each), unions - 1) for each in choices])
    names = type_names(schema)
    if not names:
        return _kind_without_type(document, schema, unions)
    return _kind_of_union([_kind_of_type(document, schema, name, unions) for name in names])


def _kind_of_type(document: SchemaDocument, schema: Schema, name: str, unions: int) -> Kind:
    if name in SCALARS:
        return Kind(name)
    if name == "array":
        return _kind_of_array(document, schema, unions)
    return _JSON if name == "object" else _STRING


def _kind_without_type(document: SchemaDocument, schema: Schema, unions: int) -> Kind:
    if "items" in schema or "prefixItems" in schema:
        return _kind_of_array(document, schema, unions)
    return _JSON if "properties" in schema or "additionalProperties" in schema else _STRING


def _kind_of_array(document: SchemaDocument, schema: Schema, unions: int) -> Kind:
    items = without_null(document, schema.get("items")) if "prefixItems" not in schema else None
    if not items or not any(keyword in items for keyword in ("type", "const", "enum", *ALTERNATIVES)):
        return _JSON  # a tuple, or members of which nothing is known
    kind = kind_of(document, items, unions - 1)
    return Kind("array", f"(list of {kind.type}, repeatable)", kind.values) if kind.type in SCALARS else _JSON


def _kind_of_union(kinds: list[Kind]) -> Kind:
    distinct = list(dict.fromkeys(kinds))
    if len(distinct) == 1:
        return distinct[0]
    if any(kind.type not in SCALARS for kind in distinct):
        return _JSON
    limited = all(kind.values for kind in distinct)
    values = dict.fromkeys(value for kind in distinct for value in kind.values) if limited else ()
    return Kind(_common_type({kind.type for kind in distinct}), values=tuple(values))


def _kind_of_values(values: list[Any]) -> Kind:
    present = [value for value in values if value is not None]
    types = {_type_of(value) for value in present}
    shown = tuple(_shown(value) for value in present)
    return Kind("json", "(JSON)", shown) if "json" in types else Kind(_common_type(types), values=shown)


def _common_type(types: set[str]) -> str:
    if types == {"integer", "number"}:
        return "number"
    return types.pop() if len(types) == 1 else "string"


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "json"


def type_names(schema: Schema) -> list[str]:
    """Without null."""
    named = schema.get("type")
    names = [named] if isinstance(named, str) else strings(as_list(named)[:_MAX_TYPES])
    return [name for name in names if name != "null"]


def _values(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else as_list(schema.get("enum"))


def describe(schema: Schema, kind: Kind) -> str:
    """The schema's description with values, default, format and bounds. Spec: protocol.md F (7)"""
    text = schema.get("description")
    text = text[: _MAX_DESCRIPTION_LENGTH + 1] if isinstance(text, str) else ""
    if kind.remark:
        text = f"{text} {kind.remark}".lstrip()
    for fact in _facts(schema, kind):
        text = f"{text} {fact}".lstrip() if text.endswith((".", "!", "?")) or not text else f"{text}. {fact}"
    return cut(text, _MAX_DESCRIPTION_LENGTH)


def _facts(schema: Schema, kind: Kind) -> list[str]:
    facts = []
    if kind.values:
        more = ", …" if len(kind.values) > _MAX_LISTED_VALUES else ""
        facts.append(f"One of: {', '.join(kind.values[:_MAX_LISTED_VALUES])}{more}")
    for keyword, title in (("default", "Default"), ("format", "Format"), ("minimum", "Min"), ("maximum", "Max")):
        if schema.get(keyword) is not None:
            facts.append(f"{title}: {_beginning(schema[keyword])}")
    return facts


def _beginning(value: object) -> str:
    if isinstance(value, str):
        return cut(value, _MAX_DEFAULT_LENGTH)
    text = ""
    # Written only as far as it is shown: a large default may be referred to by many flags.
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        text += piece
        if len(text) > _MAX_DEFAULT_LENGTH:
            break
    return cut(text, _MAX_DEFAULT_LENGTH)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
