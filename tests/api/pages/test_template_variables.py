"""A template that names a variable which its page does not give leaves a hole in a sentence. No page has one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.template import engines
from django.test import override_settings

from bench.page_seed import SMALL, seed
from bench.page_walk import page_paths

HOLE = "⟦hole⟧"
# An input without a value is an empty input.
IN_A_SENTENCE = re.compile(rf'(?<!value=")(.{{0,60}}){HOLE}', re.DOTALL)


class Missing(str):
    """False as the empty string is, so that filters such as `default` give their own value."""

    def __bool__(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def _shown_holes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(engines["django"].engine, "string_if_invalid", Missing(HOLE))  # type: ignore[attr-defined]
    with override_settings(RATELIMIT_ENABLE=False):
        yield


def holes(page: str) -> list[str]:
    """The text before each hole."""
    return [before for before in IN_A_SENTENCE.findall(page) if not before.endswith('value="')]


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["owner", "member", "nobody"])
def test_no_page_has_a_hole(role: str) -> None:
    seeded = seed(SMALL)
    browser = seeded.cast.client(role)
    found = {route: holes(browser.get(path).content.decode()) for route, path in page_paths(seeded.things).items()}
    assert {route: before for route, before in found.items() if before} == {}


def test_a_hole_is_found() -> None:
    template = engines["django"].from_string(
        "{% load i18n %}<input value='{{ typed }}'>{{ typed|default:'x' }}"
        "{% blocktranslate %}Ask {{ who }}.{% endblocktranslate %}"
    )
    (before,) = holes(template.render({}).replace("'", '"'))
    assert before.endswith("Ask ")
    assert holes(template.render({"who": "Mo"}).replace("'", '"')) == []
