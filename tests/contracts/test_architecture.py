"""docs/architecture.md is a map: every file and name on it exists, and it is read in ten minutes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text()
PATH = re.compile(r"`((?:gateway|orgs|audit|billing|credentials|oauth_ext|proxy)/[\w/.]+)(?::(\w+))?`")
MOST_WORDS, MOST_RULES = 1_200, 120  # to read, and to look up


def names_in(path: Path) -> set[str]:
    """The functions and classes at the top of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {each.name for each in ast.parse(path.read_text()).body if isinstance(each, kinds)}


def missing(text: str) -> list[str]:
    """Files of the text that do not exist, and names that their files do not define."""
    found = []
    for path, name in PATH.findall(text):
        if not (ROOT / path).exists():
            found.append(path)
        elif name and name not in names_in(ROOT / path):
            found.append(f"{path}:{name}")
    return found


def test_missing_places_are_found() -> None:
    assert missing("`proxy/views/mcp.py:mcp` and `proxy/views/`") == []
    assert missing("`proxy/views/none.py`") == ["proxy/views/none.py"]
    assert missing("`proxy/views/mcp.py:none`") == ["proxy/views/mcp.py:none"]


def test_every_place_exists() -> None:
    assert len(PATH.findall(TEXT)) > 60
    assert missing(TEXT) == []


def test_it_is_read_in_ten_minutes() -> None:
    text, table = TEXT.split("## Rule and file")
    assert len(text.split()) <= MOST_WORDS
    assert table.count("\n|") <= MOST_RULES
