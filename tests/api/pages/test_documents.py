"""The documents of /docs: found from each other, the same as their sources, in a frame of the reader's language."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client as Browser

from audit.api.entries import AdminEntryOut, RequestEntryOut
from gateway.coordination.rules import Rule
from gateway.site.help.library import library
from proxy.pages.client_guides import guides
from tests.api.pages.conftest import Site, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_window(settings: Any) -> None:
    settings.RATELIMIT_ENABLE = False


def page(name: str, **headers: str) -> str:
    answer = Browser().get(f"/docs/{name}", headers=headers)
    assert answer.status_code == 200, name
    return text(answer)


def article(found: str) -> str:
    return found.partition("<article")[2].partition("</article>")[0]


def names() -> list[str]:
    return [each.name for each in library().documents]


def test_a_stranger_reads_every_document() -> None:
    for document in library().documents:
        found = page(document.name)
        assert f'<h1><span lang="en">{document.title}</span></h1>' in found.replace("&#x27;", "'")
        assert '<article class="doc" lang="en">' in found
        assert f'<a href="{document.url}" aria-current="page">' in found


def test_the_overview_leads_to_every_document() -> None:
    found = text(Browser().get("/docs"))
    assert [name for name in names() if f'<li><a href="/docs/{name}">' not in found] == []


def test_every_document_has_its_neighbours() -> None:
    order = names()
    first, middle, last = page(order[0]), page(order[5]), page(order[-1])
    assert 'rel="prev"' not in first
    assert f'rel="next" href="/docs/{order[1]}"' in first
    assert f'rel="prev" href="/docs/{order[4]}"' in middle
    assert f'rel="next" href="/docs/{order[6]}"' in middle
    assert 'rel="next"' not in last


@pytest.mark.parametrize("name", ["nowhere", "errors/", "../settings", "guide/contents.toml", "clients/*", "clients/"])
def test_nothing_else_is_served(name: str) -> None:
    assert Browser().get(f"/docs/{name}").status_code == 404


def test_a_document_takes_no_other_method() -> None:
    assert Browser().post("/docs/errors").status_code == 405


def test_the_frame_is_german_and_the_document_english() -> None:
    found = page("errors", **{"Accept-Language": "de"})
    assert '<html lang="de"' in found
    assert "Die Dokumente sind auf Englisch." in found
    assert "Die Dokumente sind auf Englisch." not in page("errors")
    assert "The vendor did not respond in time." in found


def test_a_reader_in_german_first_changes_no_document_for_others() -> None:
    library.cache_clear()
    german = article(page("clients/cursor", **{"Accept-Language": "de"}))
    assert german == article(page("clients/cursor"))


def test_the_text_keeps_the_policy() -> None:
    for name in names():
        tags = " ".join(re.findall(r"<[^>]*>", article(page(name))))
        assert not re.search(r"<(script|style|iframe|form)\b|\sstyle=|\son\w+=|javascript:", tags), name


def test_a_client_has_the_snippet_of_its_guide(site: Site) -> None:
    setup = site.path("proxy_pages:setup")
    member = site.cast.client("member")
    assert [f"clients/{each.slug}" for each in guides()] == [name for name in names() if name.startswith("clients/")]
    for guide in guides():
        code = guide.filled(settings.BASE_URL, "").code
        assert code in unescape(page(f"clients/{guide.slug}"))
        shown = unescape(text(member.get(f"{setup}?client={guide.slug}")))
        assert code.replace("<vendor>", "fake") in shown or code in shown
        for step in guide.steps:
            assert step.split("{")[0] in unescape(page(f"clients/{guide.slug}"))


def test_figures_are_those_of_this_service(settings: Any) -> None:
    library.cache_clear()
    settings.TOOL_CALLS = Rule("tools", limit=4_321, window_s=3600)
    try:
        assert "<td>4,321 in 1 hour</td>" in page("limits")
    finally:
        library.cache_clear()


def test_every_field_of_a_log_is_explained() -> None:
    document = library().find("log-fields")
    assert document is not None
    parts = {part.heading: part for part in document.content.sections}
    tables = {name: re.findall(r"\| `(\w+)` \|", source) for name, source in tables_of(document.source).items()}
    assert tables == {"Calls": list(RequestEntryOut().fields), "Changes": list(AdminEntryOut().fields)}
    assert tables.keys() <= parts.keys()


def tables_of(source: str) -> dict[str, str]:
    """The parts of a source that have a table of fields, by their headings."""
    parts = re.split(r"^## (.+)$", source, flags=re.M)
    return {
        name: body for name, body in zip(parts[1::2], parts[2::2], strict=True) if body.lstrip().startswith("One entry")
    }


def test_a_command_of_self_hosting_is_that_of_its_file() -> None:
    assert "docker compose exec web manage doctor" in page("self-hosting/doctor")
    assert '<a href="/docs/self-hosting/backup">' in page("self-hosting/install")
