"""The README's tables of the environment are what the settings read, no more and no less."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Set by the supervisor of `make run`, described in the README's text instead.
RUN_VARIABLES = {"PORT"}


def test_every_variable_is_in_a_table_and_the_other_way_round() -> None:
    read: set[str] = set()
    for file in (ROOT / "gateway" / "settings").glob("*.py"):
        read.update(re.findall(r"env\.(?:text|integer|flag|names)\(\s*f?\"([A-Z_]+)\"", file.read_text()))
        read.update(re.findall(r"^(?:MODE|ROLE) = text\(\"([A-Z_]+)\"", file.read_text(), flags=re.M))
    readme = (ROOT / "README.md").read_text()
    table = readme.partition("<!-- environment")[2].partition("<!-- end of environment")[0]
    described = {
        name for row in re.findall(r"^\| (`.*?) \|", table, flags=re.M) for name in re.findall(r"`([A-Z_]+)`", row)
    }
    assert read - RUN_VARIABLES == described


def repeated(table: str) -> list[str]:
    """Pure: the variables that have a row of their own twice."""
    rows = Counter(re.findall(r"^\| `([A-Z_]+)` \|", table, flags=re.M))
    return sorted(name for name, number in rows.items() if number > 1)


def test_every_variable_has_one_row() -> None:
    readme = (ROOT / "README.md").read_text()
    assert not repeated(readme.partition("<!-- environment")[2].partition("<!-- end of environment")[0])


def test_a_second_row_is_found() -> None:
    assert repeated("| `SECRET_KEY` | required | a |\n| `VAR` | `./var` | b |\n") == []
    assert repeated("| `SECRET_KEY` | required | a |\n| `SECRET_KEY` | required | b |\n") == ["SECRET_KEY"]
