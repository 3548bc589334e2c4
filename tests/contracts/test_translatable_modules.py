"""Every sentence that a module shows on a page is in a message.   docs/decisions/0075

The test reads the modules of pages, and the messages of refusals anywhere. It knows a sentence by its capital and its
full stop: labels of one word and parts of sentences are for a reader to find.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product import PACKAGES

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*/pages/**/*.py", "gateway/site/*.py")
    for path in ROOT.glob(pattern)
    if path.relative_to(ROOT).parts[0] in PACKAGES and path.name != "api_docs.py"
)
REFUSALS = [ROOT / "gateway/lib/errors.py", *(ROOT / name / "errors.py" for name in ("orgs", "billing", "credentials"))]
SENTENCE = re.compile(r"[A-Z“%{][^\n]* [^\n]*[.!?]")
MESSAGE_CALLS = {
    *("gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy"),
    *("sentence", "_"),
}
# Names for programs, and what operators read.
NO_MESSAGE_CALLS = {"ImproperlyConfigured", "ValueError", "TypeError", "RuntimeError", "LookupError", "compile"}


def bare_sentences(source: str) -> list[str]:
    """Pure: the sentences of a module outside messages and docstrings. Values of f-strings are shown as {}."""
    return list(_bare(ast.parse(source)))


def _bare(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _name(node.func) in MESSAGE_CALLS | NO_MESSAGE_CALLS:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    text = _text(node)
    if text is not None:
        if SENTENCE.fullmatch(text):
            yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from _bare(child)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    return None


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('say("The key is saved.")', ["The key is saved."]),
        ('say(f"{name} is saved.")', ["{} is saved."]),
        ('CHOICES = {"a": "Choose one."}', ["Choose one."]),
        ('say(gettext("The key is saved."))', []),
        ('say(ngettext("One call.", "%(count)s calls.", 2))', []),
        ('message = sentence("%(name)s is saved.", name=name)', []),
        ('"""A docstring, no message."""', []),
        ('raise ValueError("A fault of the code.")', []),
        ('route = "orgs:members"', []),
    ],
)
def test_bare_sentences_are_found(source: str, found: list[str]) -> None:
    assert bare_sentences(source) == found


@pytest.mark.parametrize("path", [*PAGES, *REFUSALS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_sentence_is_in_a_message(path: Path) -> None:
    assert bare_sentences(path.read_text()) == []


BARE_PARAMETER = re.compile(r"\{%\s*(?:include|with)\b[^%]*?\b(?:title|text|what|label|placeholder)=\"[A-Z]")
BARE_DEFAULT = re.compile(r"\|default:\"[A-Za-z]")


# Written in English, as Django's tables beside it.
CONSOLE = "support/"
TEMPLATES = sorted(path.relative_to(ROOT / "templates").as_posix() for path in ROOT.glob("templates/**/*.html"))


@pytest.mark.parametrize("name", [each for each in TEMPLATES if not each.startswith(CONSOLE)])
def test_words_that_a_template_hands_on_are_messages(name: str) -> None:
    source = (ROOT / "templates" / name).read_text()
    assert BARE_PARAMETER.findall(source) == []
    assert BARE_DEFAULT.findall(source) == []


def test_bare_parameters_are_found() -> None:
    assert BARE_PARAMETER.search('{% include "_empty_state.html" with icon="plug" title="No teams" %}')
    assert not BARE_PARAMETER.search('{% include "_empty_state.html" with icon="plug" title=_("No teams") %}')
    assert BARE_DEFAULT.search('{{ name|default:"none" }}')
    assert not BARE_DEFAULT.search('{{ name|default:_("none") }}')
