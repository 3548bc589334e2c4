"""Pages, views and the API reach rows through selectors and services, which take the organization or the person."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.product import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
INTERFACES = {"api", "pages", "views", "views.py"}
MANAGERS = {"objects", "_default_manager", "_base_manager"}
MODULES = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if INTERFACES & set(path.relative_to(ROOT).parts)
)


def managers_in(text: str) -> list[int]:
    """The lines that use a model's manager."""
    nodes = ast.walk(ast.parse(text))
    return sorted(node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr in MANAGERS)


def test_managers_are_found() -> None:
    text = "Team.objects.all()\nrows = model._default_manager\nselectors.teams(organization)\n"
    assert managers_in(text) == [1, 2]


def test_no_interface_asks_a_model() -> None:
    assert len(MODULES) > 80
    found = [f"{path.relative_to(ROOT)}:{line}" for path in MODULES for line in managers_in(path.read_text())]
    assert found == []
