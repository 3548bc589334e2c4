"""Arguments from a form and from JSON, by a schema that a vendor wrote."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.pages.tool_arguments import MAX_FIELDS, Kind, arguments_of, read_form, read_json

SCHEMA = {
    "type": "object",
    "required": ["subject", "limit"],
    "$defs": {"Site": {"enum": ["berlin", "osaka"]}},
    "properties": {
        "site": {"$ref": "#/$defs/Site"},
        "subject": {"type": "string", "maxLength": 5, "title": "Subject line", "description": "About what"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "urgent": {"type": ["boolean", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "who": {"type": "object", "properties": {"name": {"type": "string"}}},
        "anything": {},
    },
}
ARGUMENTS = arguments_of({"inputSchema": SCHEMA})


def typed(**fields: str) -> dict[str, str]:
    return {f"arg.{name}": text for name, text in {"subject": "abc", "limit": "3", **fields}.items()}


def test_each_property_has_the_field_of_its_type() -> None:
    assert {each.name: each.kind for each in ARGUMENTS} == {
        "site": Kind.CHOICE,
        "subject": Kind.TEXT,
        "limit": Kind.INTEGER,
        "share": Kind.NUMBER,
        "urgent": Kind.BOOLEAN,
        "tags": Kind.LINES,
        "who": Kind.JSON,
        "anything": Kind.JSON,
    }
    subject, limit = ARGUMENTS[:2]
    assert (subject.label, subject.help, subject.is_required) == ("Subject line", "About what", True)
    assert limit.default == "3"


def test_what_is_typed_becomes_values_and_empty_fields_are_left_out() -> None:
    fields = typed(site='"osaka"', share="0.5", urgent="false", tags=" a \r\n\r\nb", who='{"name": "Ann"}', anything="")
    assert read_form(ARGUMENTS, fields) == (
        {
            "subject": "abc",
            "limit": 3,
            "site": "osaka",
            "share": 0.5,
            "urgent": False,
            "tags": ["a", "b"],
            "who": {"name": "Ann"},
        },
        {},
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("subject", "", "required"),
        ("subject", "abcdef", "at most 5 characters"),
        ("limit", "three", "isn’t valid JSON"),
        ("limit", "2.5", "whole number"),
        ("limit", "0", "1 or more"),
        ("limit", "11", "10 or less"),
        ("share", '"x"', "Enter a number"),
        ("urgent", '"yes"', "yes or no"),
        ("site", '"paris"', "one of the values"),
        ("tags", "a\nb\nc", "at most 2 entries"),
        ("who", "{", "isn’t valid JSON"),
        ("limit", "1e999", "isn’t valid JSON"),
    ],
)
def test_a_fault_stands_beside_its_field(name: str, text: str, words: str) -> None:
    _, faults = read_form(ARGUMENTS, typed(**{name: text}))
    assert list(faults) == [name]
    assert words in faults[name]


@pytest.mark.parametrize(
    ("text", "faulty"),
    [
        ('{"subject": "abc", "limit": 3, "more": [1]}', []),
        ('{"subject": "abc"}', ["limit"]),
        ('{"subject": 1, "limit": 11}', ["subject", "limit"]),
        ("[1]", [""]),
        ("{", [""]),
        ('{"limit": 1, "limit": 2}', [""]),
        ("[" * 100, [""]),
    ],
)
def test_json_is_checked_by_the_same_rules(text: str, faulty: list[str]) -> None:
    assert list(read_json(ARGUMENTS, text)[1]) == faulty


@pytest.mark.parametrize(
    "schema",
    [None, [], True, {"properties": []}, {"properties": {"a": 7}}, {"$ref": "#"}, {"properties": {"a": {"$ref": "#"}}}],
)
def test_a_strange_schema_is_no_fault(schema: Any) -> None:
    assert read_json(arguments_of({"inputSchema": schema}), "") == ({}, {})


def test_too_many_properties_are_given_as_json() -> None:
    many = {f"p{number}": {} for number in range(MAX_FIELDS + 1)}
    assert arguments_of({"inputSchema": {"type": "object", "properties": many}}) == []


def test_nul_is_refused_as_in_json() -> None:
    values, faults = read_form(ARGUMENTS, typed(subject="a\0b", tags="a\0b"))
    assert set(faults) == {"subject", "tags"}
    assert values == {"limit": 3}
