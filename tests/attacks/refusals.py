"""Every refusal has its status, the documented body of its route and a request id, and nothing of our inside."""

from __future__ import annotations

import json
from typing import Any

import httpx

OAUTH = ("/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/device_authorization")
API_MEMBERS = {"error", "message", "requestId", "fields", "retryAfter", "portalUrl"}
INSIDE = ("Traceback", 'File "', "SELECT ", "INSERT ", "psycopg", "sqlite3", "django.db")


def refused(answer: httpx.Response, status: int, error: object = None, said: bytes = b"") -> Any:
    """The body, after all checks. `error`: the code, the JSON-RPC number, or the start of a command's sentence.

    `said`: the request, whose own words an answer may have, such as the id of a message.
    """
    assert answer.status_code == status, (answer.status_code, answer.text[:500])
    assert 400 <= status < 500 or status in {502, 503}
    assert answer.headers["X-Request-Id"]
    assert not [word for word in INSIDE if word in answer.text and word.encode() not in said], answer.text[:500]
    path = answer.extensions["path"]
    if path.startswith("/api/"):
        return _of_api(answer, error)
    if path.endswith(("/cli", "/cli/schema")) and path.startswith("/v1/"):
        return _of_command(answer, error)
    if path.startswith("/v1/"):
        return _of_mcp(answer, error)
    if path in OAUTH:
        return _of_oauth(answer, error)
    # A page for who reads pages; for others the body of the API.
    return _of_api(answer, error) if answer.headers["Content-Type"] == "application/json" else _of_page(answer)


def _json(answer: httpx.Response) -> Any:
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    return json.loads(answer.content)


def _of_api(answer: httpx.Response, error: object) -> Any:
    body = _json(answer)
    assert {"error", "message", "requestId"} <= set(body) <= API_MEMBERS, body
    assert body["error"] == error, body
    assert body["requestId"] == answer.headers["X-Request-Id"]
    assert answer.status_code != 429 or int(answer.headers["Retry-After"]) == body["retryAfter"] > 0
    return body


def _of_command(answer: httpx.Response, error: object) -> Any:
    body = _json(answer)
    assert set(body) == {"error"}
    assert isinstance(body["error"], str)
    assert body["error"].startswith(str(error or "")), body
    _timed(answer)
    return body


def _of_mcp(answer: httpx.Response, error: object) -> Any:
    body = _json(answer)
    if isinstance(error, int):
        assert set(body) | {"id"} == {"jsonrpc", "id", "error"}, body  # 2026-07-28 leaves an unknown id out
        assert body["error"]["code"] == error, body
        assert body["error"]["message"]
    else:
        assert set(body) == {"error", "error_description"}, body
        assert body["error"] == error, body
        assert body["error_description"]
    _timed(answer)
    return body


def _timed(answer: httpx.Response) -> None:
    names = ("X-Auth-Ms", "X-Session-Ms", "X-Vendor-Ms", "X-Total-Ms")
    assert all(answer.headers[name].isdecimal() for name in names), answer.headers


def _of_oauth(answer: httpx.Response, error: object) -> Any:
    body = _json(answer)
    assert set(body) == {"error", "error_description"}, body
    assert body["error"] == error, body
    assert body["error_description"]
    return body


def _of_page(answer: httpx.Response) -> str:
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8", answer.headers
    assert "Location" not in answer.headers
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    return answer.text
