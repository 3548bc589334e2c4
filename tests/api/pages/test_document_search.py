"""The search over the documents: a form without scripts, bounded, and harmless whatever is typed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client as Browser

from gateway.site.help.library import Document
from gateway.site.help.search import MAX_HITS, Index
from gateway.site.help_pages import MAX_QUERY
from tests.api.pages.conftest import SCRIPT, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_window(settings: Any) -> None:
    settings.RATELIMIT_ENABLE = False


def search(query: str, **headers: str) -> str:
    answer = Browser().get("/docs/search", {"q": query}, headers=headers)
    assert answer.status_code == 200
    return text(answer)


def hits(page: str) -> list[str]:
    return re.findall(r'<h2><a href="([^"]+)">', page)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("vendor_timeout", "/docs/errors#vendor_timeout"),
        ("rotate a key", "/docs/recipes/rotate-a-key"),
        ("Cursor", "/docs/clients/cursor"),
        ("QUOTAS", "/docs/limits"),
        ("vendorMs arrived", "/docs/log-fields#calls"),
    ],
)
def test_the_best_part_comes_first(query: str, first: str) -> None:
    assert hits(search(query))[0] == first


def test_a_hit_has_its_heading_its_document_and_an_excerpt() -> None:
    page = search("slow_down")
    assert '<a href="/docs/errors#slow_down">slow_down</a>' in page
    assert '<p class="muted small">Errors by code</p>' in page
    assert "<mark>" in search("wrong fields")


@pytest.mark.parametrize("query", ["zzzz", "errors zzzz", "?!", "   "])
def test_nothing_found_is_said(query: str) -> None:
    page = search(query)
    assert hits(page) == []
    assert ("No document contains all of these words." in page) is bool(query.strip())


def test_without_a_query_there_is_the_form_alone() -> None:
    page = text(Browser().get("/docs/search"))
    assert 'type="search"' in page
    assert 'role="status"' not in page.partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize("query", [SCRIPT, '"><img src=x onerror=alert(1)>', "a' onfocus='x"])
def test_a_script_in_the_query_stays_text(query: str) -> None:
    page = search(query)
    assert query not in page
    assert not re.search(r"<(img|script)[^>]*(onerror|>alert)", page)


def test_a_query_of_100_kb_is_cut() -> None:
    page = search("timeout " * 12_800)
    assert len(hits(page)) <= MAX_HITS
    assert max(map(len, re.findall(r'name="q" value="([^"]*)"', page))) <= MAX_QUERY
    assert hits(search("x" * 100_000)) == []
    assert hits(search("(" * 100_000)) == []


def test_a_null_byte_is_a_character_like_another() -> None:
    assert hits(search("\x00key\x00")) != []


def test_the_frame_is_in_the_readers_language() -> None:
    assert "Kein Dokument" in search("zzzz", **{"Accept-Language": "de"})


def document(name: str, source: str) -> Document:
    return Document(name, "Tests", source, lambda target: target)


def test_titles_and_headings_count_more_than_details() -> None:
    index = Index(
        [
            document("detail", "# Other\n\nA backup, a backup, a backup, a backup and a backup.\n"),
            document("part", "# Third\n\nWords.\n\n## Backup\n\nHow.\n"),
            document("title", "# Backup\n\nWords.\n"),
        ]
    )
    assert [hit.url for hit in index.find("backup")] == ["/docs/title", "/docs/part#backup", "/docs/detail"]
    assert [hit.url for hit in index.find("back")] == ["/docs/title", "/docs/part#backup", "/docs/detail"]
    assert index.find("backup restore") == []


def test_an_excerpt_marks_the_words_and_keeps_whole_ones() -> None:
    index = Index([document("long", f"# Long\n\n{'before ' * 40}needle {'after ' * 60}\n")])
    (hit,) = index.find("NEEDLE")
    said = "".join(piece for piece, _ in hit.excerpt)
    assert [piece for piece, is_found in hit.excerpt if is_found] == ["needle"]
    assert said.startswith("… before ")
    assert said.endswith("after …")
    assert len(said) < 200
