"""Pure: the parts of JSON Schema that tool definitions need: local references, merging, a plain root.

Vendors write the schemas, so every function accepts any JSON, fetches nothing, and ends: references have a maximum
depth, and all that is read costs steps from a budget, so repeated references cannot multiply the work.
"""

from collections.abc import Iterable, Mapping, Sized
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import msgspec

Schema: TypeAlias = dict[str, Any]

ALTERNATIVES: Final = ("anyOf", "oneOf")
COMBINATORS: Final = (*ALTERNATIVES, "allOf")
DATA: Final = frozenset({"const", "default", "enum", "examples"})  # keywords whose values only look like schemas

_MAX_INDIRECTIONS: Final = 5  # references in a row
_MAX_STEPS: Final = 5_000  # per document
_READ_IN_A_STEP: Final = 10  # members of an object or array
_CHARACTERS_IN_A_STEP: Final = 10_000
_MAX_CHOICES: Final = 50  # different schemas of one property
_MAX_REFERENCE_LENGTH: Final = 512
_MAX_NOTE_LENGTH: Final = 500
_CHOICE_WORDS: Final = {"anyOf": "at least one", "oneOf": "exactly one"}


class ArgumentSet(msgspec.Struct, frozen=True):
    properties: dict[str, Any]
    required: frozenset[str]  # in every case


_NO_ARGUMENTS: Final = ArgumentSet({}, frozenset())


class SchemaDocument:
    """One schema with its references. For one use: it counts steps."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._steps_left = _MAX_STEPS

    @property
    def is_spent(self) -> bool:
        """No steps are left: every further answer is "unknown"."""
        return self._steps_left < 0

    def affords(self, *containers: Sized) -> bool:
        """Take the steps for reading all members; False if too few are left."""
        return self._take_steps(sum(map(len, containers)) // _READ_IN_A_STEP)

    def resolve(self, schema: object, indirections: int = _MAX_INDIRECTIONS) -> Schema | None:
        """`schema` with `$ref` and `allOf` merged in; its own keywords win. None if unknown. Spec: protocol.md F (5)"""
        has_steps = self._take_steps(1)
        if schema is True:
            return {}
        # Unknown: no object, a reference to nowhere or outside, too many references in a row, or no steps left.
        if not has_steps or not isinstance(schema, dict):
            return None
        parts = self._parts(schema)
        if not parts:
            return schema
        if not self.affords(schema, parts):
            return None
        merged = without(schema, ("$ref", "allOf"))
        for part in parts:
            resolved = self.resolve(part, indirections - 1) if indirections else None
            if resolved is None or not self._take_steps(len(resolved)):
                return None
            merged = {**resolved, **merged}
        return merged

    def argument_set(self, schema: object, indirections: int = _MAX_INDIRECTIONS) -> ArgumentSet:
        """Arguments of the schema, its references, parts and alternatives. Spec: protocol.md F (5, 6)"""
        if not self._take_steps(1) or not isinstance(schema, dict):
            return _NO_ARGUMENTS
        required = as_list(schema.get("required"))
        if not self.affords(required, as_list(schema.get("allOf"))):
            return _NO_ARGUMENTS
        own = ArgumentSet(as_dict(schema.get("properties")), frozenset(strings(required)))
        if not indirections:
            return own
        parts = [self.argument_set(part, indirections - 1) for part in self._parts(schema)]
        parts += [self._arguments_of_either(schema.get(keyword), indirections - 1) for keyword in ALTERNATIVES]
        # Required by the schema, by a part, or by every alternative.
        always = own.required.union(*(part.required for part in parts))
        return ArgumentSet(self._join("allOf", [own, *self._affordable(parts)]), always)

    def _arguments_of_either(self, alternatives: object, indirections: int) -> ArgumentSet:
        argument_sets = [self.argument_set(each, indirections) for each in as_list(alternatives) if each is not False]
        if not argument_sets:
            return _NO_ARGUMENTS
        required = frozenset.intersection(*(arguments.required for arguments in argument_sets))
        return ArgumentSet(self._join("anyOf", self._affordable(argument_sets)), required)

    def _affordable(self, argument_sets: list[ArgumentSet]) -> list[ArgumentSet]:
        return [
            arguments
            for arguments in argument_sets
            if arguments.properties and self._take_steps(len(arguments.properties))
        ]

    def _join(self, keyword: str, argument_sets: list[ArgumentSet]) -> dict[str, Any]:
        """Properties of all `argument_sets`; `{keyword: [...]}` where they differ."""
        properties = argument_sets[0].properties if argument_sets else {}
        if len(argument_sets) < 2:
            return properties
        schemas_of: dict[str, list[Any]] = {}
        for arguments in argument_sets[1:]:  # the first shape may have very many properties, which are only copied
            for name, schema in arguments.properties.items():
                known = schemas_of.setdefault(name, [properties[name]] if name in properties else [])
                if len(known) <= _MAX_CHOICES and not any(self._are_equal(schema, each) for each in known):
                    known.append(schema)
        return {**properties, **{name: _joined(keyword, known) for name, known in schemas_of.items()}}

    def _are_equal(self, one: object, other: object) -> bool:
        """False also if the steps do not suffice to compare."""
        pairs = [(one, other)]
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            if isinstance(left, dict) and isinstance(right, dict):
                if len(left) != len(right) or not self.affords(left) or left.keys() != right.keys():
                    return False
                pairs += [(value, right[key]) for key, value in left.items()]
            elif isinstance(left, list) and isinstance(right, list):
                if len(left) != len(right) or not self.affords(left):
                    return False
                pairs += zip(left, right, strict=True)
            elif left != right or not self._take_steps(_characters(left) // _CHARACTERS_IN_A_STEP):
                return False
        return True

    def _parts(self, schema: Schema) -> list[Any]:
        parts = as_list(schema.get("allOf"))
        return [self._look_up(schema["$ref"]), *parts] if "$ref" in schema else parts

    def _look_up(self, reference: object) -> object:
        """The target of a local reference such as `#/$defs/Site`; None if there is none."""
        if not isinstance(reference, str) or len(reference) > _MAX_REFERENCE_LENGTH or reference[:2] not in ("#", "#/"):
            return None
        found: object = self._root
        for token in unquote(reference).split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found

    def _take_steps(self, steps: int) -> bool:
        self._steps_left -= steps
        return self._steps_left >= 0


def flatten_root(schema: Schema) -> tuple[Schema, str]:
    """`schema` as a plain object, and a sentence on the lost choice, or "". Spec: protocol.md A.7"""
    # Model APIs refuse `anyOf`, `oneOf` or `allOf` at the root, for the whole request. Deeper levels stay unchanged.
    if not any(keyword in schema for keyword in COMBINATORS):
        return (schema if schema.get("type") == "object" else {**schema, "type": "object"}), ""
    document = SchemaDocument(schema)
    arguments = document.argument_set(schema)
    flat = without(schema, (*COMBINATORS, "required")) | {"type": "object", "properties": arguments.properties}
    if arguments.required:
        flat["required"] = sorted(arguments.required)
    notes = [_choice_note(document, keyword, schema.get(keyword)) for keyword in ALTERNATIVES]
    return flat, " ".join(note for note in notes if note)


def _choice_note(document: SchemaDocument, keyword: str, alternatives: object) -> str:
    argument_sets = [document.argument_set(each) for each in as_list(alternatives)]
    sets = [", ".join(sorted(arguments.required) or arguments.properties) for arguments in argument_sets]
    named = list(dict.fromkeys(f"({names})" for names in sets if names))
    if len(named) < 2:
        return ""
    listed = ", ".join(named)
    return f"Required arguments: {_CHOICE_WORDS[keyword]} of {cut(listed, _MAX_NOTE_LENGTH)}."


def _joined(keyword: str, schemas: list[Any]) -> Any:
    if len(schemas) > _MAX_CHOICES:
        return {}  # too many to compare: any value
    return schemas[0] if len(schemas) == 1 else {keyword: schemas}


def _characters(value: object) -> int:
    return len(value) if isinstance(value, str) else 0


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"  # the ellipsis counts


def is_deeper_than(value: object, limit: int) -> bool:
    # Iterative: a deep value cannot reach the recursion limit.
    level = [value]
    for _ in range(limit):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    return [each for each in as_list(value) if isinstance(each, str)]


def without(schema: Mapping[str, Any], keywords: Iterable[str]) -> Schema:
    dropped = frozenset(keywords)
    return {keyword: value for keyword, value in schema.items() if keyword not in dropped}
