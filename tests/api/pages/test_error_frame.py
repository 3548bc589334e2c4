"""Refusals below an organization's address keep its navigation for members, and say nothing to others."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import RequestFactory

from gateway.site import error_frame, errors
from tests.api.pages.conftest import Site, text
from tests.api.pages.test_markup import Strict

NAVIGATION = 'class="side"'


def nowhere(site: Site) -> str:
    return f"/orgs/{site.cast.org.id}/nothing-here"


@pytest.mark.parametrize(
    ("who", "route", "status", "title"),
    [
        ("member", "audit_pages:request-log", 403, "You can’t open this page"),
        ("owner", "", 404, "Page not found"),
        ("member", "", 404, "Page not found"),
    ],
)
def test_members_keep_the_navigation(site: Site, who: str, route: str, status: int, title: str) -> None:
    answer = site.cast.client(who).get(site.path(route) if route else nowhere(site))
    page = text(answer)
    assert answer.status_code == status
    assert f"<h1>{title}</h1>" in page
    assert NAVIGATION in page
    assert f'href="{site.path("proxy_pages:home")}">Go to overview</a>' in page
    assert ('href="' + site.path("orgs:settings") + '"' in page) == (who == "owner")
    assert not Strict(page).inline


def test_a_thing_that_is_gone_is_not_found_inside_the_frame(site: Site) -> None:
    answer = site.owner().get(site.path("orgs:team", str(uuid.uuid4())))
    assert answer.status_code == 404
    assert NAVIGATION in text(answer)


def test_others_learn_nothing_of_an_organization(site: Site) -> None:
    browser = site.cast.client("stranger")
    pages = [text(browser.get(f"/orgs/{org_id}/people")) for org_id in (site.cast.org.id, uuid.uuid4())]
    ids = [page.split('id="request-id">')[1].split("<")[0] for page in pages]
    assert pages[0].replace(ids[0], "") == pages[1].replace(ids[1], "")
    assert NAVIGATION not in pages[0]
    assert site.cast.org.name not in pages[0]


def refused(site: Site, status: int, **headers: str) -> str:
    request: Any = RequestFactory().get(site.path("orgs:members"), headers=headers)
    request.user = site.cast.user("owner")
    return text(errors.error_response(request, status))


def test_faults_of_the_service_and_bursts_need_no_database(site: Site, django_assert_num_queries: Any) -> None:
    user = site.cast.user("owner")
    with django_assert_num_queries(0):
        for status in (429, 500, 502, 503):
            request: Any = RequestFactory().get(site.path("orgs:members"))
            request.user = user
            assert NAVIGATION not in text(errors.error_response(request, status))


def test_a_script_gets_no_frame(site: Site) -> None:
    assert NAVIGATION in refused(site, 404)
    assert NAVIGATION not in refused(site, 404, **{"HX-Request": "true"})


def test_without_the_database_the_page_has_no_frame(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(error_frame, "membership_row", away)
    page = refused(site, 404)
    assert "Page not found" in page
    assert NAVIGATION not in page
