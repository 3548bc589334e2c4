"""Pages and static files are packed; answers that may hold a secret never are."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import reverse

from tests.api.pages.conftest import Site, hidden, text

GZIP = {"Accept-Encoding": "gzip"}


def is_packed(answer: object) -> bool:
    return getattr(answer, "headers", {}).get("Content-Encoding") == "gzip"


def test_a_page_is_packed_for_those_who_ask(site: Site) -> None:
    path = site.path("proxy_pages:setup")
    packed, plain = site.owner().get(path, headers=GZIP), site.owner().get(path)
    assert is_packed(packed)
    assert "Accept-Encoding" in packed["Vary"]
    assert packed["Cache-Control"] == "no-store"
    assert len(packed.content) < len(plain.content) / 2
    assert "<h1>" in gzip.decompress(packed.content).decode()
    assert not is_packed(plain)


def test_the_answer_with_a_new_secret_is_not_packed(site: Site) -> None:
    browser, path = site.owner(), site.path("oauth_pages:service-client-new")
    form = {"name": "Night shift", "access": "all", "expires_in_days": "30", "mcp_client": "cursor"}
    key = hidden(browser.get(path), "form_key")
    answer = browser.post(path, {**form, "form_key": key}, headers=GZIP)
    assert answer.status_code in {200, 201}
    assert "cak_" in text(answer)
    assert not is_packed(answer)


@pytest.mark.parametrize(
    "path", ["/", "/signin", "/status", "/device", "/invite/some-token", "/api/profile", "/api/schema"]
)
def test_what_is_not_named_is_not_packed(site: Site, path: str) -> None:
    assert not is_packed(site.owner().get(path, headers=GZIP))


def test_a_refusal_is_not_packed(site: Site) -> None:
    answer = site.cast.client("member").get(site.path("orgs:settings"), headers=GZIP)
    assert answer.status_code == 403
    assert not is_packed(answer)


def test_the_token_of_a_form_differs_in_each_answer(site: Site) -> None:
    browser = site.owner()
    path = reverse("profile")
    assert hidden(browser.get(path), "csrfmiddlewaretoken") != hidden(browser.get(path), "csrfmiddlewaretoken")


def test_a_static_file_is_packed_whole(db: None) -> None:
    path = "/static/css/app.css"
    packed, plain = _file(path, GZIP), _file(path, {})
    assert is_packed(packed[0])
    assert gzip.decompress(packed[1]) == plain[1]
    part = _file(path, {**GZIP, "Range": "bytes=0-9"})
    assert part[0].status_code == 206
    assert part[1] == plain[1][:10]


def _file(path: str, headers: dict[str, str]) -> tuple[Any, bytes]:
    answer: Any = Browser().get(path, headers=headers)
    body = b"".join(answer.streaming_content)
    answer.close()
    return answer, body
