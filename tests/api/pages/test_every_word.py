"""Every word of every page is in a message: in a marked language nothing but data is left as it was written.

No word is missing either: a template that names a variable without a value would leave a hole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.template import engines
from django.test import Client as Browser
from django.test import override_settings

from audit.models import AdminAuditEntry, RequestAuditEntry
from audit.shipping.platforms.registry import PLATFORMS
from bench.page_seed import SOME, Seeded, seed
from bench.page_walk import page_paths
from gateway.catalog import registry
from oauth_ext.models import Client
from orgs.models import ManagementToken, Organization, Team, User
from tests.api.pages.holes import HOLE, holes, show_holes
from tests.api.pages.marked_language import LANGUAGE, Page, bare_texts, marked, offer_marked_language

# Names, and what people type or copy.
PRODUCTS = "Gateway MCP UTC JSON OAuth EdDSA Webhook SIEM Claude Code Cursor VS Codex curl CLI mcp cli ms whsec"
NAMES = frozenset([*PRODUCTS.split(), "device", "limit"])
# Codes, addresses and numbers; dates and sizes, which Django writes; texts that the seed typed.
CODE = re.compile(r"\S*(?:\w_\w|\w\.\w|@|/|\d\w|\w\d|\*\*)\S*")
MOMENT = re.compile(r"\d{1,2}\. \w{3,4}\.?(?: \d{4})?|\b(?:Mo|Di|Mi|Do|Fr|Sa|So) \d{1,2}\b|\d\s(?:Bytes|KB)\b")
TYPED = ("For the night shift", "Night key", "API key")
DEFINITION = r"Does what \S+ says, for one device or for all of them, and answers with a list of results\."


@pytest.fixture
def seeded(db: None) -> Seeded:
    """People have names that are no words of pages."""
    seeded = seed(SOME)
    for number, person in enumerate(seeded.cast.people.values()):
        person.display_name = f"Zoe Quartz{number}"
        person.save()
    return seeded


@pytest.fixture(autouse=True)
def _marked(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    offer_marked_language(settings, tmp_path)
    show_holes(monkeypatch)
    with override_settings(RATELIMIT_ENABLE=False):
        yield


def data() -> re.Pattern[str]:
    """The names that people and vendors have given."""
    values = [
        *User.objects.values_list("display_name", flat=True),
        *Organization.objects.values_list("name", flat=True),
        *Client.objects.values_list("name", flat=True),
        *Team.objects.values_list("name", flat=True),
        *ManagementToken.objects.values_list("name", flat=True),
        *(vendor.name for vendor in registry.load().by_slug.values()),
        *(platform.title for platform in PLATFORMS.values()),
        # Logs keep the names of their time.
        *RequestAuditEntry.objects.values_list("user_label", flat=True).distinct(),
        *AdminAuditEntry.objects.values_list("actor_label", flat=True).distinct(),
        *AdminAuditEntry.objects.values_list("target_label", flat=True).distinct(),
        *TYPED,
    ]
    escaped = (re.escape(value) for value in sorted(values, key=len, reverse=True) if value)
    return re.compile("|".join([DEFINITION, *escaped]))


def with_details(seeded: Seeded) -> dict[str, str]:
    """Every page, and the details of one row of each log."""
    paths = page_paths(seeded.things)
    logs = {"activity": RequestAuditEntry, "activity/changes": AdminAuditEntry}
    for name, log in logs.items():
        entry = log.objects.filter(org_id=seeded.cast.org.id).first()  # type: ignore[attr-defined]
        route = f"orgs/<uuid:org_id>/{name}"
        paths[f"{route}?entry="] = f"{paths[route]}?entry={entry.pk}"
    return paths


def left_over(browser: Browser, paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(route, text) for each text with a word that is in no message."""
    named = data()
    for route, path in paths.items():
        answer = browser.get(path, headers={"Accept-Language": LANGUAGE})
        if answer.status_code not in (301, 302) and answer["Content-Type"].startswith("text/html"):
            page = answer.content.decode()
            assert Page(page).language == LANGUAGE, route
            for before in holes(page):
                yield route, f"a variable is missing after {before}"
            page = page.replace(HOLE, "")
            for text in bare_texts(page, lambda text: CODE.sub(" ", MOMENT.sub(" ", named.sub(" ", text))), NAMES):
                yield route, text


def further_views(things: dict[str, str]) -> dict[str, str]:
    """Addresses with a query, and one that is not found."""
    org, vendor = f"/orgs/{things['org_id']}", things["vendor"]
    addresses = (
        f"{org}/access?view=teams",
        f"{org}/access?view=agents",
        f"{org}/vendors/{vendor}/tools?role=admin",
        f"{org}/vendors/{vendor}/tools?start=read-only",
        f"{org}/vendors/{vendor}/tools?role=member&view=preview",
        f"{org}/vendors/{vendor}/tools?approve=all",
        f"{org}/nothing-here",
    )
    return {address: address for address in addresses}


@pytest.mark.parametrize("role", ["owner", "admin", "member"])
def test_every_view_is_in_one_language(seeded: Seeded, role: str) -> None:
    found = left_over(seeded.cast.client(role), further_views(seeded.things))
    assert sorted({text: route for route, text in found}.items()) == []


@pytest.mark.parametrize("role", ["owner", "admin", "member", "nobody"])
def test_every_page_is_in_one_language(seeded: Seeded, role: str) -> None:
    found = left_over(seeded.cast.client(role), with_details(seeded))
    assert sorted({text: route for route, text in found}.items()) == []


def test_a_bare_word_is_found() -> None:
    source = f'<p title="Save">{marked("Done")} <code>x</code> Acme</p><span lang="en">English</span>'
    assert list(bare_texts(source, lambda text: text.replace("Acme", ""), NAMES)) == ["Save"]
    assert list(bare_texts("<p>12 calls</p>", str, NAMES)) == ["12 calls"]
    foreign = '<div lang="en"><p title="Save">x<br></p></div><p title="Cancel">1</p>'
    assert list(bare_texts(foreign, str, NAMES)) == ["Cancel"]
    assert marked("%(count)s calls of {who} <b>now</b> 5 %%") == (
        "%(count)s \uff43\uff41\uff4c\uff4c\uff53 \uff4f\uff46 {who} <b>\uff4e\uff4f\uff57</b> 5 %%"
    )


def test_a_missing_variable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    show_holes(monkeypatch)
    template = engines["django"].from_string(
        """{% load i18n %}<input value="{{ typed }}">{{ typed|default:"x" }}"""
        """{% blocktranslate %}Ask {{ who }}.{% endblocktranslate %}"""
    )
    (before,) = holes(template.render({}))
    assert before.endswith("Ask ")
    assert holes(template.render({"who": "Mo"})) == []
