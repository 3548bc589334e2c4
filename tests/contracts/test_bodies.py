"""Bodies that no route takes. Nothing is written by any of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponse

from audit.models import AdminAuditEntry
from tests.contracts.test_routes import TABLE, World, undone, world, world_of_module  # noqa: F401
from tests.contracts.url_walk import api_addresses
from tests.factories.api import JSON

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
    row = TABLE[(method, path)]
    ours = undone(lambda: send(world, method, path + row.query, body, headers={"Origin": settings.BASE_URL}))
    assert ours.status_code == (row.to_admins or row.to_owner or row.success)


def forget_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen bad bodies are more than some routes allow in an hour."""
    from gateway.coordination.store import Admission
    from gateway.web import rate

    monkeypatch.setattr(rate, "count", lambda request, rule: Admission(rule, True, 1, 0, None))
