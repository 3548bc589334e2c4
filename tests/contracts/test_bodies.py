"""Bodies that no route takes, and what surrounds every answer. Nothing is written by any of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.http import HttpResponse

from audit.models import AdminAuditEntry
from gateway.coordination import backend
from gateway.coordination.store import CoordinationUnavailable
from orgs import membership_check
from tests.contracts.test_routes import TABLE, World, undone, world  # noqa: F401
from tests.contracts.url_walk import api_addresses
from tests.factories.api import JSON, Api

WITH_BODY = [
    pytest.param(method, address.template, id=f"{method} {address.template}")
    for address in api_addresses()
    for method, operation in getattr(address.view, "operations", {}).items()
    if operation.body is not None
]
UNSAFE = [pytest.param(method, path, id=f"{method} {path}") for method, path in TABLE if method != "GET"]

BAD: dict[str, tuple[bytes, dict[str, Any], tuple[int, str]]] = {
    "nothing but a brace": (b"{", {}, (400, "invalid_json")),
    "a key twice": (b'{"name": "a", "name": "b"}', {}, (400, "invalid_json")),
    "NaN": (b'{"name": NaN}', {}, (400, "invalid_json")),
    "NUL": (b'{"name": "a\\u0000b"}', {}, (400, "invalid_json")),
    "half a surrogate": (b'{"name": "\\ud800"}', {}, (400, "invalid_json")),
    "no UTF-8": (b'{"name": "\xff"}', {}, (400, "invalid_json")),
    "too deep": (b'{"name":' * 70 + b"1" + b"}" * 70, {}, (400, "invalid_json")),
    "an array": (b"[]", {}, (400, "invalid_json")),
    "text": (b'"name"', {}, (400, "invalid_json")),
    "null": (b"null", {}, (400, "invalid_json")),
    "a form": (b"name=a", {"content_type": "application/x-www-form-urlencoded"}, (415, "unsupported_media_type")),
    "plain text": (b'{"name": "a"}', {"content_type": "text/plain"}, (415, "unsupported_media_type")),
    "no media type": (b'{"name": "a"}', {"content_type": ""}, (415, "unsupported_media_type")),
    "another charset": (b"{}", {"content_type": "application/json; charset=utf-16"}, (415, "unsupported_media_type")),
    "packed": (b"{}", {"headers": {"Content-Encoding": "gzip"}}, (415, "unsupported_media_type")),
    "too large": (b" " * (256 * 1024 + 1), {}, (413, "body_too_large")),
}


def send(world: World, method: str, path: str, body: bytes = b"", **options: Any) -> HttpResponse:  # noqa: F811
    options.setdefault("content_type", JSON)
    path = path.format(**world.ids)
    return world.cast.client("owner").generic(method, path, body, **options)  # type: ignore[return-value]


def status_and_error(answer: HttpResponse) -> tuple[int, str]:
    return answer.status_code, json.loads(answer.content)["error"]


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_no_route_takes_what_is_no_json_object(
    world: World,  # noqa: F811
    method: str,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_limits(monkeypatch)
    before = AdminAuditEntry.objects.count()
    for name, (body, options, expected) in BAD.items():
        assert status_and_error(send(world, method, path, body, **options)) == expected, name
    assert AdminAuditEntry.objects.count() == before


@pytest.mark.parametrize(("method", "path"), UNSAFE)
def test_no_route_acts_for_another_site(world: World, method: str, path: str) -> None:  # noqa: F811
    body = json.dumps(world.filled(TABLE[(method, path)].body)).encode()
    before = AdminAuditEntry.objects.count()
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ):
        assert status_and_error(send(world, method, path, body, headers=headers)) == (403, "cross_site")
    assert AdminAuditEntry.objects.count() == before
    ours = undone(lambda: send(world, method, path, body, headers={"Origin": settings.BASE_URL}))
    row = TABLE[(method, path)]
    assert ours.status_code == (row.to_owner or row.success)


def forget_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen bad bodies are more than some routes allow in an hour."""
    from gateway.coordination.store import Admission
    from gateway.web import rate

    monkeypatch.setattr(rate, "count", lambda request, rule: Admission(rule, True, 1, 0, None))


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
