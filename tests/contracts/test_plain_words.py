"""Sentences in comments and docstrings begin with the name of a thing."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("gateway", "orgs", "credentials", "oauth_ext", "proxy", "audit", "billing", "demo", "bench", "scripts", "tests")
OPENINGS = re.compile(
    r"(?:^|[.!?]\s+|\n\s*\n)\s*"
    r"(what(?:'s| is| was| comes| came)?|who|which|whoever|whatever|nobody|somebody|anybody|no one)\b"
    r"|[:;]\s+(nobody|somebody|whoever|whatever|what(?:'s| is| was| comes| came))\b",
    re.I,
)
QUESTION = re.compile(r"[^.!?]*\?")
# A comment with a word of OPENINGS, whose "no one" may be on two lines. A search is quick and splitting a source into
# tokens is not; nine sources of ten have no such comment.
COMMENT = re.compile(
    r"#.*\b(?:(?:what|who|which|whoever|whatever|nobody|somebody|anybody|no one)\b|no\s*$)", re.I | re.M
)
SKIPPED = {"migrations", "djstripe_migrations", "node_modules"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sources(folder: Path) -> Iterator[Path]:
    """Python files, without a look into folders of SKIPPED: one of them may have more files than all others."""
    for base, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in SKIPPED]
        yield from (Path(base, name) for name in names if name.endswith(".py"))


def docstrings(source: str) -> list[str]:
    found = (ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED))
    return [text for text in found if text]


def comments(source: str) -> list[str]:
    """Comments; lines that follow one another are one comment. None when no comment has a word of OPENINGS."""
    blocks: list[str] = []
    if not COMMENT.search(source):
        return blocks
    last_line = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("# ")
            if token.start[0] == last_line + 1 and blocks:
                blocks[-1] += f" {text}"
            else:
                blocks.append(text)
            last_line = token.start[0]
    return blocks


def offences(source: str) -> list[str]:
    """The openings that are no name, as they are written. A question may begin like this."""
    texts = [*docstrings(source), *comments(source)]
    return [
        found[1] or found[2]
        for text in texts
        for found in OPENINGS.finditer(text)
        if not QUESTION.match(text, found.end())
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody waits for it.", ["Nobody"]),
        ("Kept for a while. Whoever asks again gets it.", ["Whoever"]),
        ("Says what is left.", []),
        ("What is left, in seconds.", ["What is"]),
        ("Counts calls: somebody has to.", ["somebody"]),
        ("What one call holds.", ["What"]),
        ("Rows of a call. Who sent it.", ["Who"]),
        ("Which of them is kept", ["Which"]),
        ("no one waits for it", ["no one"]),
        ("Anybody with the link.", ["Anybody"]),
        ("The rule: which row counts.", []),
        ("Who may call? Members.", []),
        ("Who may call. Members?", ["Who"]),
    ],
)
def test_openings_are_found(text: str, found: list[str]) -> None:
    assert offences(f'"""{text}"""\n') == found
    assert offences(f"x = 1  # {text}\n") == found


def test_an_opening_over_two_lines_is_found() -> None:
    assert offences("# It is kept. No\n# one waits for it.\n") == ["No one"]


def test_sentences_begin_with_the_name_of_a_thing() -> None:
    found = {str(path.relative_to(ROOT)): offences(path.read_text()) for app in APPS for path in sources(ROOT / app)}
    assert len(found) > 1000
    assert {path: words for path, words in found.items() if words} == {}
