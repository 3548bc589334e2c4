"""Every word of a page is in a message, so that it can be shown in another language.   docs/decisions/0075"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.product import PACKAGES

ROOT = Path(__file__).parents[2]
# Pages of support staff are in English, as Django admin is here: docs/decisions/0098.
ENGLISH = ("admin/", "support/")
ALL_TEMPLATES = (path.relative_to(ROOT / "templates").as_posix() for path in ROOT.glob("templates/**/*.html"))
TEMPLATES = sorted(name for name in ALL_TEMPLATES if not name.startswith(ENGLISH))

MESSAGE_BLOCK = re.compile(r"\{% blocktrans(?:late)?\b.*?\{% endblocktrans(?:late)? %\}", re.DOTALL)
COMMENT = re.compile(r"\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}|<!--.*?-->", re.DOTALL)
NO_TEXT = re.compile(r"<(script|style|code|kbd|pre)\b.*?</\1>", re.DOTALL)
TEMPLATE_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
SPOKEN_ATTRIBUTE = re.compile(
    r'\s(?:aria-label|alt|title|placeholder|data-busy|data-confirm|data-[a-z-]*label)="([^"]*)"'
)
HTML_TAG = re.compile(r"<[^>]*>", re.DOTALL)
ENTITY = re.compile(r"&[a-z]+;")
# Words with a capital and no translation: names, and what is typed or copied.
NAMES = re.compile(r"\b(?:Gateway|MCP|OAuth|JSON|UTC|API|URL|CSV|ID|SDK|CLI|curl|GET|POST|ms)\b")
WORD = re.compile(r"[A-Za-z]{2,}")
# Names for programs: parameters and classes.
NO_WORDS = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\{% block body_class %\}[a-z-]+")


def bare_words(source: str) -> list[str]:
    """Pure: the words of a template that are in no message."""
    for hidden in (NO_WORDS, COMMENT, MESSAGE_BLOCK, NO_TEXT, TEMPLATE_TAG):
        source = hidden.sub(" ", source)
    spoken = " ".join(SPOKEN_ATTRIBUTE.findall(source))
    text = ENTITY.sub(" ", f"{HTML_TAG.sub(' ', source)} {spoken}")
    return WORD.findall(NAMES.sub(" ", text))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("<p>Saved.</p>", ["Saved"]),
        ('<p aria-label="Saved">1</p>', ["Saved"]),
        ("{% if is_new %}New{% endif %}", ["New"]),
        ('{% translate "Saved." %}{{ name }}', []),
        ("{% blocktranslate trimmed %}The plan of <b>{{ name }}</b>.{% endblocktranslate %}", []),
        ("<code>make run</code>{# why #}<i class='icon'></i> &nbsp; MCP", []),
    ],
)
def test_bare_words_are_found(source: str, words: list[str]) -> None:
    assert bare_words(source) == words


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_word_is_in_a_message(name: str) -> None:
    assert bare_words((ROOT / "templates" / name).read_text()) == []


def calls_in_f_strings(source: str) -> list[str]:
    """Pure: messages inside f-strings, which no catalog gets."""
    strings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)]
    calls = [node for string in strings for node in ast.walk(string) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if "gettext" in ast.unparse(call.func)]


def test_no_message_is_in_an_f_string() -> None:
    assert calls_in_f_strings("f'{gettext(1)} and {other(2)}'") == ["gettext(1)"]
    modules = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    assert modules
    found = [f"{path}: {call}" for path in modules for call in calls_in_f_strings(path.read_text())]
    assert found == []
