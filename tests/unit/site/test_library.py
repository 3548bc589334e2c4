"""The list of documents: its files are in the image, and links between them become addresses."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from gateway.site.help.library import library

pytestmark = pytest.mark.one_back_end
ROOT = Path(settings.BASE_DIR)


def files_of(contents: dict[str, Any]) -> list[str]:
    """The files of the documents, and the list itself."""
    entries = [each for group in contents["group"] for each in group["documents"] if each != "clients/*"]
    named = [each["file"] if isinstance(each, dict) else f"docs/guide/{each}.md" for each in entries]
    return ["docs/guide/contents.toml", *named]


def is_in_image(path: str, rules: list[str]) -> bool:
    """The last rule that fits the path, or a folder of it, decides."""
    folders = [path, *(str(each) for each in Path(path).parents)]
    found = True
    for rule in rules:
        pattern = rule.removeprefix("!")
        if any(fnmatch.fnmatchcase(each, pattern) and each.count("/") == pattern.count("/") for each in folders):
            found = rule.startswith("!")
    return found


@pytest.mark.parametrize(
    ("path", "is_in"), [("docs/a.md", True), ("docs/b.md", False), ("docs/guide/a/b.md", True), ("tests/a.py", False)]
)
def test_the_last_rule_decides(path: str, is_in: bool) -> None:
    assert is_in_image(path, ["*", "!docs", "docs/*", "!docs/guide", "!docs/a.md"]) is is_in


def test_every_file_is_in_the_image() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    files = files_of(tomllib.loads((ROOT / "docs/guide/contents.toml").read_text()))
    assert len(files) > 20
    assert [path for path in files if not (ROOT / path).is_file() or not is_in_image(path, rules)] == []
    assert not is_in_image("docs/decisions/0001-layers-and-interfaces.md", rules)


def test_every_file_of_the_guide_is_a_document() -> None:
    files = files_of(tomllib.loads((ROOT / "docs/guide/contents.toml").read_text()))
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/guide").rglob("*.md")}
    assert written == {path for path in files if path.startswith("docs/guide/") and path.endswith(".md")}


def test_names_and_titles_are_unique() -> None:
    documents = library().documents
    assert len({each.name for each in documents}) == len({each.title for each in documents}) == len(documents)
    assert {each.title for each in documents if "`" in each.title or "\\" in each.title} == set()


def test_links_between_files_become_addresses() -> None:
    document = library().find("recipes/ship-logs")
    assert document is not None
    assert document.resolve("../../log-shipping.md#names-of-the-fields") == "/docs/log-shipping#names-of-the-fields"
    assert document.resolve("../errors.md") == "/docs/errors"
    assert document.resolve("#what-arrives") == "#what-arrives"
    assert document.resolve("/status") == "/status"
    assert document.resolve("../../../README.md") is None
    assert document.resolve("javascript:alert(1)") is None


def test_neighbours_end_at_both_ends() -> None:
    documents = library().documents
    assert library().neighbours(documents[0])[0] is None
    assert library().neighbours(documents[-1])[1] is None
    assert library().neighbours(documents[1]) == (documents[0], documents[2])
