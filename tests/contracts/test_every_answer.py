"""Headers and refusals that every answer has in common, whatever the route."""

from __future__ import annotations

import json

import pytest
from django.db import OperationalError

from gateway.coordination import backend
from gateway.coordination.store import CoordinationUnavailable
from orgs import membership_check
from tests.contracts.test_bodies import status_and_error
from tests.factories.api import Api


def test_a_body_is_refused_also_where_none_is_read(api: Api) -> None:
    path = "/orgs/{org}/members"
    user = api.cast.user("member").id
    answer = api.send("owner", "DELETE", f"{path}/{user}", raw=b"x", content_type="text/plain")
    assert status_and_error(answer) == (415, "unsupported_media_type")
    assert api.send("owner", "DELETE", f"{path}/{user}", {"anything": 1}).status_code == 204


def test_size_is_refused_before_everything_else(api: Api) -> None:
    huge = b" " * (256 * 1024 + 1)
    for who in ("nobody", "member", "other_owner"):
        assert status_and_error(api.send(who, "DELETE", "/orgs/{org}", raw=huge)) == (413, "body_too_large")
    fits = b" " * (256 * 1024 - 20) + b'{"name": "Acme 2"}'
    assert api.send("owner", "PATCH", "/orgs/{org}", raw=fits).status_code == 200


def test_a_problem_document_for_who_asks_for_one(api: Api) -> None:
    answer = api.send("member", "PATCH", "/orgs/{org}", {"name": "X"}, headers={"Accept": "application/problem+json"})
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    found = json.loads(answer.content)
    assert (found["title"], found["status"], found["error"]) == ("Forbidden", 403, "forbidden")
    assert found["detail"] == found["message"]
    plain = api.send("member", "GET", "/orgs", headers={"Accept": "text/html"})
    assert (plain.status_code, plain["Content-Type"]) == (200, "application/json")


def test_head_is_get_without_a_body(api: Api) -> None:
    answer = api.send("member", "HEAD", "/orgs/{org}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert api.send("nobody", "HEAD", "/orgs/{org}").status_code == 401


def test_a_request_id_goes_through_when_it_is_harmless(api: Api) -> None:
    assert api.send("member", "GET", "/profile", headers={"X-Request-Id": "abc-1.2_3"})["X-Request-Id"] == "abc-1.2_3"
    answer = api.send("nobody", "GET", "/profile", headers={"X-Request-Id": "a b<script>"})
    assert json.loads(answer.content)["requestId"] == answer["X-Request-Id"] != "a b<script>"


@pytest.mark.parametrize("path", ["/orgs/", "/nowhere", "/orgs/{org}/nowhere", "/orgs/{org}/members/"])
def test_an_address_that_does_not_exist(api: Api, path: str) -> None:
    for who in ("nobody", "owner"):
        assert status_and_error(api.send(who, "GET", path)) == (404, "not_found")
        assert status_and_error(api.send(who, "POST", path, {})) == (404, "not_found")


def test_without_the_coordination_store_nothing_is_let_through(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def hit(self, rule: object, key: str) -> None:
            raise CoordinationUnavailable("away")

    monkeypatch.setattr(backend, "current", Away)
    answer = api.send("owner", "PATCH", "/orgs/{org}", {"name": "X"})
    assert (status_and_error(answer), answer["Retry-After"]) == ((503, "unavailable"), "5")
    api.cast.org.refresh_from_db()
    assert api.cast.org.name == "Acme"


def test_a_database_that_is_away_is_said_without_its_words(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise OperationalError("connection to server at 10.0.0.5 refused: SELECT secret")

    monkeypatch.setattr(membership_check, "require_membership", broken)
    answer = api.send("owner", "GET", "/orgs/{org}")
    assert (status_and_error(answer), answer["Retry-After"]) == ((503, "unavailable"), "5")
    assert b"10.0.0.5" not in answer.content


def test_the_schema_is_read_only(api: Api) -> None:
    assert api.send("nobody", "HEAD", "/schema").status_code == 200
    for method in ("POST", "PUT", "DELETE"):
        answer = api.send("nobody", method, "/schema", {})
        assert (status_and_error(answer), answer["Allow"]) == ((405, "method_not_allowed"), "GET, HEAD")
