"""The threat model speaks of code and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
ROWS = [line.split("|") for line in TEXT.partition("## What is defended, and how")[2].splitlines() if line[:1] == "|"]
PATH = re.compile(r"`([\w/]+\.py)`")


def test_every_defence_names_its_code_and_its_tests() -> None:
    defences = ROWS[2:]
    assert len(defences) > 15
    for _, threat, _, code, tests, _ in defences:
        assert PATH.findall(code), threat
        assert PATH.findall(tests), threat
        assert all(path.startswith("tests/") for path in PATH.findall(tests)), threat


def test_paths_of_the_page_exist() -> None:
    named = {*PATH.findall(TEXT), *re.findall(r"\]\((?!http)([^)#]+)", TEXT)}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_page_has_its_parts() -> None:
    assert re.findall(r"^## (.*)$", TEXT, flags=re.M) == [
        "What is worth protecting",
        "Who acts",
        "Trust boundaries",
        "What is defended, and how",
        "What is not defended",
        "What remains",
        "What to do in production",
    ]
