"""Pure: the parts of docs/install.md that are executed.

A fenced block whose first line has a name behind its language, as in "```sh one-host", is executed or written to the
file of that name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]+) (?P<name>\S+)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    name: str
    text: str


def blocks(document: str) -> list[Block]:
    """The named blocks, in the order of the document."""
    return [Block(found["language"], found["name"], dedent(found["text"])) for found in _BLOCK.finditer(document)]


def replaced(text: str, values: Mapping[str, str]) -> str:
    """The text with the reader's own values in place of the document's."""
    for before, after in values.items():
        text = text.replace(before, after)
    return text
