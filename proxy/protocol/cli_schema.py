"""Pure: tools as commands with flat flags; dotted arguments back to objects. Spec: §4.14 · D113 · protocol.md F"""

from collections.abc import Container, Iterable
from typing import Any, Final

from proxy.protocol.flag_types import SCALARS, Kind, describe, kind_of, type_names, without_null
from proxy.protocol.json_schema import (
    ALTERNATIVES,
    Schema,
    SchemaDocument,
    as_dict,
    as_list,
    flatten_root,
    is_deeper_than,
    strings,
)
from proxy.protocol.tool_definitions import MAX_DEPTH, Definition, description_of
from proxy.protocol.tool_names import ExposedTools

_MAX_EXPANDED: Final = 10  # members of an object; a larger one keeps one JSON flag


def commands(
    vendor_prefix: str, tools: Iterable[object], *, allowed: Container[str] | None = None
) -> list[dict[str, Any]]:
    """Sorted: `{command, description, flags: [{name, type, required, description}]}`."""
    definitions: dict[str, Definition] = {}
    for tool in tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            definitions.setdefault(tool["name"], tool)
    # A command's name depends on all names of the vendor, so `allowed` (vendor names) filters afterwards.
    exposed = ExposedTools(vendor_prefix, definitions).tools
    shown = [tool for tool in exposed if allowed is None or tool.vendor_name in allowed]
    return [
        _command(tool.command, definitions[tool.vendor_name]) for tool in sorted(shown, key=lambda tool: tool.command)
    ]


def _command(command: str, definition: Definition) -> dict[str, Any]:
    schema = as_dict(definition.get("inputSchema"))
    if is_deeper_than(schema, MAX_DEPTH):
        schema = {}
    text, (_, choice) = description_of(definition), flatten_root(schema)
    return {"command": command, "description": f"{text}\n\n{choice}" if choice else text, "flags": _flags(schema)}


def fold_dotted(args: dict[str, Any], schema: object) -> dict[str, Any]:
    """`{"site.id": 7}` becomes `{"site": {"id": 7}}` where `commands` shows the flag `site.id`. Spec: protocol.md F (4)

    Raises: ValueError if a value is given twice, or a flag and its parent, which is no object.
    """
    if not any("." in name for name in args) or not isinstance(schema, dict):
        return args
    document = SchemaDocument(schema)
    properties = document.argument_set(schema).properties
    expansions = _expansions(document, properties, _resolved(document, properties))
    places = {f"{parent}.{member}": (parent, member) for parent, members in expansions.items() for member in members}
    folded = {name: value for name, value in args.items() if name not in places}
    for name, (parent, member) in places.items():
        if name in args:
            given = folded.get(parent, {})
            if not isinstance(given, dict):
                raise ValueError(f"'{name}' is given, so '{parent}' must be an object.")
            if member in given:
                raise ValueError(f"'{name}' is given both on its own and inside '{parent}'.")
            folded[parent] = given | {member: args[name]}
    return folded


def _flags(schema: Schema) -> list[dict[str, Any]]:
    document = SchemaDocument(schema)
    arguments = document.argument_set(schema)
    known = _resolved(document, arguments.properties)
    expansions = _expansions(document, arguments.properties, known)
    flags = []
    for name, schema_of_one in arguments.properties.items():
        resolved = known.get(name)
        required = name in arguments.required
        if name not in expansions:
            described = as_dict(schema_of_one) if resolved is None else resolved
            flags.append(_flag(name, described, kind_of(document, resolved), required))
            continue
        listed = as_list(as_dict(resolved).get("required"))
        always = strings(listed) if document.affords(listed) else []
        for member, (member_schema, kind) in expansions[name].items():
            flags.append(_flag(f"{name}.{member}", member_schema, kind, required and member in always))
    return sorted(flags, key=lambda flag: not flag["required"])  # stable: otherwise in the schema's order


def _resolved(document: SchemaDocument, properties: dict[str, Any]) -> dict[str, Schema | None]:
    resolved: dict[str, Schema | None] = {}
    for name, schema in properties.items():
        if document.is_spent:  # the rest stays unknown
            break
        resolved[name] = without_null(document, schema)
    return resolved


def _expansions(
    document: SchemaDocument, names: Container[str], resolved: dict[str, Schema | None]
) -> dict[str, dict[str, tuple[Schema, Kind]]]:
    """By property, the members with a dotted flag of their own: those of small flat objects."""
    taken: set[str] = set()
    expansions = {}
    for name, schema in resolved.items():
        members = _scalar_members(document, schema)
        dotted = {f"{name}.{member}" for member in members}
        # A dotted flag must not have the name of another flag.
        if members and not any(each in names or each in taken for each in dotted):
            expansions[name] = members
            taken |= dotted
    return expansions


def _scalar_members(document: SchemaDocument, resolved: Schema | None) -> dict[str, tuple[Schema, Kind]]:
    """Members of a nested object if they are few, all scalars, and no others are allowed."""
    if resolved is None or not _is_plain_object(resolved):
        return {}
    members = {}
    for name, schema in resolved["properties"].items():
        member = without_null(document, schema)
        kind = kind_of(document, member)
        if member is None or kind.type not in SCALARS:
            return {}
        members[name] = (member, kind)
    return members


def _is_plain_object(schema: Schema) -> bool:
    free_keys = schema.get("additionalProperties", False) is not False or "patternProperties" in schema
    otherwise_limited = any(keyword in schema for keyword in (*ALTERNATIVES, "const", "enum"))
    return (
        0 < len(as_dict(schema.get("properties"))) <= _MAX_EXPANDED
        and type_names(schema) in ([], ["object"])
        and not free_keys
        and not otherwise_limited
    )


def _flag(name: str, schema: Schema, kind: Kind, required: bool) -> dict[str, Any]:
    return {"name": name, "type": kind.type, "required": required, "description": describe(schema, kind)}
