"""The language of pages: the cookie's, the browser's, English; answers for machines are English."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils.formats import date_format
from django.utils.translation import override

from gateway.lib.numbers import grouped
from tests.factories.cast import Cast

pytestmark = pytest.mark.django_db


def lang_of(client: Client, path: str = "/signin", **headers: str) -> tuple[str, str]:
    answer = client.get(path, headers=headers)
    return answer.headers.get("Content-Language", ""), answer.content.decode().partition('lang="')[2].partition('"')[0]


def test_a_page_is_in_the_language_of_the_browser() -> None:
    client = Client()
    assert lang_of(client, **{"Accept-Language": "de-AT,de;q=0.9"}) == ("de", "de")
    assert lang_of(client, **{"Accept-Language": "fr"}) == ("en", "en")
    assert lang_of(client) == ("en", "en")
    assert "Accept-Language" in client.get("/signin").headers["Vary"]


def test_the_choice_of_the_person_comes_first() -> None:
    client = Client()
    answer = client.post("/language", {"language": "de", "next": "/signin"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/signin")
    cookie = answer.cookies["language"]
    assert (cookie.value, cookie["httponly"], cookie["samesite"]) == ("de", True, "Lax")
    assert lang_of(client, **{"Accept-Language": "en"}) == ("de", "de")


def test_the_form_leads_back_by_the_browsers_own_word() -> None:
    """A page holds no copy of its address, whose query may be a secret."""
    client = Client()
    assert "secret-in-a-query" not in client.get("/signin?x=secret-in-a-query").content.decode()
    for referer, back in (
        ("http://testserver/signin?a=1", "http://testserver/signin?a=1"),
        ("https://evil.example/", "/"),
    ):
        answer = client.post("/language", {"language": "de"}, headers={"Referer": referer})
        assert answer.headers["Location"] == back


@pytest.mark.parametrize("language", ["fr", "../../etc", "", "<b>"])
def test_an_unknown_language_is_no_choice(language: str) -> None:
    client = Client()
    answer = client.post("/language", {"language": language, "next": "https://evil.example/"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert lang_of(client) == ("en", "en")


def test_a_form_of_another_site_is_refused() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post("/language", {"language": "de"}).status_code == 403
    assert client.get("/language").status_code == 405


def test_answers_for_machines_are_english() -> None:
    answer = Client().get("/api/orgs", headers={"Accept-Language": "de", "Accept": "application/json"})
    assert answer.status_code == 401
    assert "Content-Language" not in answer.headers
    assert answer.json()["message"].isascii()


def test_one_language_asks_nobody(settings: Any) -> None:
    settings.LANGUAGES = [("en", "English")]
    assert lang_of(Client(), **{"Accept-Language": "de"}) == ("", "en")


def test_the_offered_languages_are_english_and_german() -> None:
    assert dict(settings.LANGUAGES) == {"en": "English", "de": "Deutsch"}


def test_a_cookie_of_an_unknown_language_is_no_choice() -> None:
    client = Client()
    client.cookies["language"] = "tlh"
    assert lang_of(client, **{"Accept-Language": "de"}) == ("de", "de")
    assert lang_of(client, **{"Accept-Language": "tlh"}) == ("en", "en")


def test_visitors_and_members_see_the_choice(cast: Cast) -> None:
    signed_in = cast.client("member").get("/profile", headers={"Accept-Language": "de"}).content.decode()
    assert 'action="/language"' in signed_in
    assert 'name="language" value="en"' in signed_in
    assert "Abmelden" in signed_in
    page = Client().get("/signin").content.decode()
    buttons = re.findall(r'<button[^>]*name="language" value="(\w+)" lang="(\w+)"( aria-current="true")?', page)
    assert [(code, bool(current)) for code, _, current in buttons] == [("en", True), ("de", False)]


@pytest.mark.parametrize("path", ["/api/orgs", "/.well-known/oauth-protected-resource"])
def test_machines_get_the_same_answer_in_every_language(path: str) -> None:
    client = Client()
    english = client.get(path, headers={"Accept-Language": "en", "X-Request-Id": "same"})
    client.post("/language", {"language": "de"})
    german = client.get(path, headers={"Accept-Language": "de", "X-Request-Id": "same"})
    assert german.status_code == english.status_code
    assert german.content == english.content


def test_dates_and_numbers_are_written_as_the_language_does() -> None:
    with override("de"):
        assert (date_format(date(2026, 11, 26), "DATE_FORMAT"), grouped(12_345)) == ("26. Nov. 2026", "12.345")
    with override("en"):
        assert (date_format(date(2026, 11, 26), "DATE_FORMAT"), grouped(12_345)) == ("26 Nov 2026", "12,345")
