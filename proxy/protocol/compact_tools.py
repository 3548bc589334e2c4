"""Pure: three tools in place of all: find a tool, read its definition, call it. docs/decisions/0103 · Contract: 9

A caller asks for them with `?tools=search`. Their list is the same text for every caller, so that model providers may
keep it; no vendor is asked for it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gateway.catalog.vendor import TOOL_NAME_MAX_CHARACTERS

SEARCH, DESCRIBE, CALL = "search_tools", "describe_tool", "call_tool"
NAMES: Final = frozenset((SEARCH, DESCRIBE, CALL))
DEFAULT_HITS, MAX_HITS = 5, 20
MAX_QUERY_CHARACTERS = 500
_READING: Final = {"readOnlyHint": True, "openWorldHint": False}


class Search(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`vendor`: the slug of the only one to look at."""

    query: str
    vendor: str | None = None
    limit: int = DEFAULT_HITS


class Describe(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str


class BadCompactCall(ValueError):
    """The text tells a model what to send instead."""


def _name(text: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": TOOL_NAME_MAX_CHARACTERS, "description": text}


DEFINITIONS: Final[list[dict[str, Any]]] = [
    {
        "name": SEARCH,
        "title": "Search tools",
        "description": (
            "Finds the tools for a task among all tools that you may call. Say what you want to do in a few words, such"
            " as 'open a support ticket'. Use it before you say that something cannot be done."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARACTERS},
                "vendor": {"type": "string", "description": "Search only this vendor's tools."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": DEFAULT_HITS},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        "annotations": _READING,
    },
    {
        "name": DESCRIBE,
        "title": "Describe a tool",
        "description": "Returns the full definition of one tool, with the schema of its arguments.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": _name("As search_tools returned it.")},
            "required": ["name"],
            "additionalProperties": False,
        },
        "annotations": _READING,
    },
    {
        "name": CALL,
        "title": "Call a tool",
        "description": "Calls a tool and returns its result. Read its definition first with describe_tool.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": _name("As search_tools returned it."),
                "arguments": {"type": "object", "description": "Arguments that fit the tool's inputSchema."},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    },
]
LIST: Final = b",".join(map(msgspec.json.encode, DEFINITIONS))
INSTRUCTIONS: Final = (
    f"Find tools with {SEARCH}, read their arguments with {DESCRIBE} and call them with {CALL}."
    " Tools are not listed one by one here."
)


def unwrapped(params: dict[str, Any]) -> dict[str, Any]:
    """Of tools/call: the params of the real tool's call where they name one for `call_tool`; others as they are."""
    inner = params.get("arguments")
    if params.get("name") != CALL or not isinstance(inner, dict) or inner.keys() - {"name", "arguments"}:
        return params
    name, arguments = inner.get("name"), inner.get("arguments")
    if not isinstance(name, str) or not name or name in NAMES or not isinstance(arguments, dict | None):
        return params
    return {**params, "name": name, "arguments": arguments}


def is_own(params: dict[str, Any]) -> bool:
    """Whether params of tools/call, unwrapped, name one of the three."""
    name = params.get("name")
    return isinstance(name, str) and name in NAMES


def read(params: dict[str, Any]) -> Search | Describe:
    """The arguments of an own call. Raises: BadCompactCall."""
    arguments = params.get("arguments") or {}
    try:
        if params["name"] == SEARCH:
            return _checked(msgspec.convert(arguments, Search))
        if params["name"] == DESCRIBE:
            return msgspec.convert(arguments, Describe)
    except msgspec.ValidationError as fault:
        raise BadCompactCall(f"The arguments are invalid: {fault}.") from None
    raise BadCompactCall(
        f"{CALL} needs arguments of the form {{'name': the name of a tool, 'arguments': an object}}. The name must be"
        f" that of a tool which {SEARCH} has found."
    )


def _checked(search: Search) -> Search:
    if not 1 <= len(search.query.strip()) <= MAX_QUERY_CHARACTERS or len(search.query) > MAX_QUERY_CHARACTERS:
        raise BadCompactCall(f"The query must have 1 to {MAX_QUERY_CHARACTERS} characters.")
    if not 1 <= search.limit <= MAX_HITS:
        raise BadCompactCall(f"The limit must be 1 to {MAX_HITS}.")
    return search


def text_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    """A result of tools/call."""
    return {"content": [{"type": "text", "text": text}], **({"isError": True} if is_error else {})}
