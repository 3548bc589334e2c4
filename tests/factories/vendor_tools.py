"""2,000 tools of 50 invented vendors, and 60 questions with the tool that answers each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
# By the tool's first word: what it does, and its arguments.
WORK = {
    "list": ("Returns {all}, newest first, a page at a time.", ("page", "page_size", "filter")),
    "get": ("Returns one {one} with all its fields.", ("id",)),
    "create": ("Adds a {one}. The answer has its id.", ("name", "details")),
    "update": ("Changes fields of a {one}; fields that are left out stay.", ("id", "fields")),
    "delete": ("Removes a {one} for good.", ("id",)),
}


def _lines(name: str) -> Iterator[list[str]]:
    for line in (FOLDER / name).read_text().splitlines():
        if not line.startswith("#"):
            yield [part.strip() for part in line.split("|")]


def questions() -> list[tuple[str, str]]:
    return [(asked, tool) for asked, tool in _lines("vendor_questions.txt")]


def definitions() -> dict[str, list[dict[str, Any]]]:
    """Definitions by the vendor's name, as tools/list shows them."""
    return {
        vendor: [_tool(vendor.lower(), about, verb, thing) for thing in things.split(", ") for verb in WORK]
        for vendor, about, things in _lines("vendor_tools.txt")
    }


def _tool(prefix: str, about: str, verb: str, thing: str) -> dict[str, Any]:
    text, arguments = WORK[verb]
    shown = _several(thing) if verb == "list" else thing
    return {
        "name": f"{prefix}_{verb}_{shown.replace(' ', '_').replace('-', '_')}",
        "description": f"{text.format(all=_several(thing), one=thing)} Part of the {about}.",
        "inputSchema": {"type": "object", "properties": {each: {"type": "string"} for each in arguments}},
    }


def _several(thing: str) -> str:
    if thing.endswith("y") and thing[-2] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}{'es' if thing.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
