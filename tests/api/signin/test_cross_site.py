"""Unsafe requests that a foreign page made a browser send are refused by where they come from."""

from __future__ import annotations

import pytest
from django.test import Client as Browser

from tests.factories.cast import Cast

BACKEND = "orgs.signin.backend.IdentityBackend"


def signed_in(cast: Cast) -> Browser:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(cast.user("owner"), backend=BACKEND)
    return browser


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://testserver"}, {"Sec-Fetch-Site": "same-origin"}])
def test_a_plain_client_signs_out_with_its_cookie_alone(cast: Cast, headers: dict[str, str]) -> None:
    browser = signed_in(cast)
    assert browser.post("/oidc/logout/", headers=headers).status_code == 302
    assert browser.get("/profile").status_code == 302  # to the sign-in page


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/oidc/logout/", "/welcome", "/api/anything"])
def test_a_foreign_page_is_refused(cast: Cast, path: str, headers: dict[str, str]) -> None:
    browser = signed_in(cast)
    answer = browser.post(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "cross_site")
    assert browser.get("/profile").status_code == 200


def test_a_form_needs_its_token(cast: Cast) -> None:
    answer = signed_in(cast).post("/welcome", {"name": "Initech"})
    assert answer.status_code == 403
    assert cast.user("owner").memberships.count() == 1


def test_signing_out_is_never_a_get(cast: Cast) -> None:
    assert signed_in(cast).get("/oidc/logout/").status_code == 405


def test_an_expired_consent_form_is_a_page_for_a_person(cast: Cast) -> None:
    answer = signed_in(cast).post("/oauth/authorize/consent", {"request": "x"})
    assert answer.status_code == 403
    assert answer["Content-Type"].startswith("text/html")
    assert "This form has expired" in answer.content.decode()
