"""Strategies of the property tests: any JSON, and JSON that looks like a schema without being careful."""

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)

_NAMES = st.sampled_from(["a", "b", "a.b", "b.c", "", "$ref", "x y"])
_REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/$defs/a/properties/b", "#x", "http://x/y"]
)
_TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", "file"])


def _keywords(inner: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    schemas = inner | JSON
    many = st.lists(inner, max_size=3) | JSON
    by_name = st.dictionaries(_NAMES, schemas, max_size=4) | JSON
    return st.fixed_dictionaries(
        {},
        optional={
            "type": _TYPES | st.lists(_TYPES, max_size=3) | JSON,
            "properties": by_name,
            "required": st.lists(_NAMES, max_size=3) | JSON,
            "$defs": by_name,
            "$ref": _REFERENCES | JSON,
            "items": schemas,
            "prefixItems": many,
            "anyOf": many,
            "oneOf": many,
            "allOf": many,
            "additionalProperties": schemas,
            "patternProperties": by_name,
            "const": JSON,
            "enum": st.lists(JSON, max_size=3) | JSON,
            "description": st.text(max_size=10) | JSON,
            "default": JSON,
            "format": st.just("date") | JSON,
            "minimum": st.integers() | JSON,
            "maximum": st.integers() | JSON,
        },
    )


ANY_SCHEMA = _keywords(st.recursive(st.booleans(), _keywords, max_leaves=4))
