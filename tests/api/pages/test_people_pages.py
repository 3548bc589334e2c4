"""The pages about people, teams and settings for everybody: who opens them, and whose forms change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import pytest
from django.test import Client as Browser
from pytest_django import DjangoDbBlocker

from gateway.web.form_idempotency import FIELD
from tests.api.pages.conftest import SCRIPT, Site, hidden, text
from tests.api.pages.people import FORMS, PAGES, RANK, People, make_people, state
from tests.api.pages.test_markup import Strict, sprite_symbols
from tests.factories.cast import make_cast
from tests.factories.fixed_window import count_anew
from tests.factories.module_rows import rows_of_module
from tests.factories.tenant import connect, load_vendor, make_tenant

TOKEN = "csrfmiddlewaretoken"


@pytest.fixture(scope="module")
def people_of_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[People]:
    with rows_of_module(django_db_blocker, _make_rows) as made:
        yield made


@pytest.fixture
def people(db: None, people_of_module: People, monkeypatch: pytest.MonkeyPatch) -> People:
    count_anew(monkeypatch)
    return deepcopy(people_of_module)


def _make_rows() -> People:
    cast = make_cast()
    for slug in ("fake", "other"):
        load_vendor("http://127.0.0.1:9/mcp", slug=slug)
    return make_people(Site(cast, make_tenant(cast.org, cast.user("owner"))))


def expected(name: str, who: str) -> int:
    if who not in RANK:
        return 302 if who == "nobody" else 404
    return 200 if RANK[who] >= RANK[PAGES[name].role] else 403


@pytest.mark.parametrize("who", ["owner", "admin", "member", "other_owner", "stranger", "nobody"])
@pytest.mark.parametrize("name", PAGES)
def test_who_opens_the_page(people: People, name: str, who: str) -> None:
    response = people.browser(who).get(people.path(name), PAGES[name].query)
    assert response.status_code == expected(name, who)
    page = text(response)
    if response.status_code == 302:
        assert response["Location"].startswith(f"/signin?next={people.path(name)}")
    elif response.status_code != 200:
        # Only members learn the name, in the frame around the refusal.
        assert (people.site.cast.org.name in page) == (who in RANK)
        assert "Night shift" not in page
    else:
        assert "<h1>" in page
        assert f" - {people.site.cast.org.name} - Gateway</title>" in page
        assert page.count('aria-current="page"') == 1
    assert response.status_code == 302 or response["Cache-Control"] == "no-store"


def send(people: People, who: str, path: str, form: dict[str, str], **options: bool) -> int:
    browser = people.browser(who)
    data = people.filled(form)
    if path.endswith("/invitations") and who in RANK:
        shown = browser.get(path)
        data |= {FIELD: hidden(shown, FIELD)} if shown.status_code == 200 else {}
    return browser.post(path, data, **options).status_code


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_the_form_does_what_it_says_and_for_nobody_else(people: People, name: str, form: dict[str, str]) -> None:
    before, path = state(), people.path(name)
    for who in ("other_owner", "stranger", "nobody", "member", "admin"):
        if RANK.get(who, -1) < RANK[PAGES[name].role]:
            assert send(people, who, path, form) == expected(name, who)
            assert state() == before, who
    assert send(people, "owner", path, form) in {201, 302}
    assert state() != before


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if page.names])
def test_rows_of_another_organization_are_not_there(people: People, name: str) -> None:
    """The other organization's owner puts our ids under their own organization."""
    before, path = state(), people.foreign_path(name)
    browser = people.browser("other_owner")
    assert browser.get(path).status_code == 404
    for form in PAGES[name].forms:
        assert browser.post(path, people.filled(form)).status_code == 404
    assert state() == before


@pytest.mark.parametrize(("name", "form"), FORMS)
@pytest.mark.parametrize("token", [None, "", "x" * 64])
def test_a_form_without_its_token_does_nothing(
    people: People, name: str, form: dict[str, str], token: str | None
) -> None:
    before = state()
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(people.site.cast.user("owner"), backend="orgs.signin.backend.IdentityBackend")
    shown = browser.get(people.path(name), PAGES[name].query)
    data = people.filled(form)
    if name == "invitations":
        data[FIELD] = hidden(shown, FIELD)
    refused = browser.post(people.path(name), data if token is None else {**data, TOKEN: token})
    assert (refused.status_code, "This form has expired." in text(refused)) == (403, True)
    assert state() == before
    assert browser.post(people.path(name), {**data, TOKEN: hidden(shown, TOKEN)}).status_code in {201, 302}
    assert state() != before


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if not page.forms])
def test_a_page_without_a_form_takes_no_post(people: People, name: str) -> None:
    assert people.browser("owner").post(people.path(name)).status_code == 405


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_well_made(people: People, name: str, is_full: bool) -> None:
    if is_full:
        connect(people.site.cast.org, people.site.cast.user("owner"))
    page = text(people.browser("owner").get(people.path(name), PAGES[name].query))
    found = Strict(page)
    assert not found.inline
    assert len(found.ids) == len(set(found.ids))
    assert page.count("<h1>") == page.count("<main") == 1
    assert found.icons <= sprite_symbols()
    assert all(field.get("id") in found.label_targets for field in found.fields), found.fields


@pytest.mark.parametrize("name", PAGES)
def test_names_with_markup_are_inert(people: People, name: str) -> None:
    cast = people.site.cast
    for who in ("owner", "member"):
        cast.user(who).display_name = SCRIPT
        cast.user(who).save()
    people.team.name = SCRIPT
    people.team.save()
    cast.org.name = SCRIPT
    cast.org.save()
    page = text(people.browser("owner").get(people.path(name), {**PAGES[name].query, "q": SCRIPT, "find": SCRIPT}))
    assert SCRIPT not in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
