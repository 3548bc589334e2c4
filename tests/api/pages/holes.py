"""Holes of pages: a template names a variable that its page does not give, and a word is missing from a sentence."""

from __future__ import annotations

import re

import pytest
from django.template import engines

HOLE = "⟦hole⟧"
# An input without a value is an empty input.
AN_INPUT = 'value="'
BEFORE = re.compile(rf"(.{{0,60}}){HOLE}", re.DOTALL)


class Missing(str):
    """False as the empty string is, so that filters such as `default` give their own value."""

    def __bool__(self) -> bool:
        return False


def show_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, templates write HOLE where a variable is missing."""
    monkeypatch.setattr(engines["django"].engine, "string_if_invalid", Missing(HOLE))  # type: ignore[attr-defined]


def holes(page: str) -> list[str]:
    """The text before each hole."""
    return [before for before in BEFORE.findall(page) if not before.endswith(AN_INPUT)]
