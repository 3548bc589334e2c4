"""Pages are counted by django-ratelimit in the shared cache, and by the exact limiter while that is away.

Spec: §8 · D20-D23 · docs/decisions/0017
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client as Browser

from gateway.coordination import backend
from gateway.coordination.fallback_store import FallbackStore
from gateway.coordination.redis_store import RedisStore
from gateway.coordination.rules import Rule
from gateway.web import page_limit
from tests.factories.cast import Cast
from tests.factories.fixed_window import hold_window
from tests.factories.races import at_once

PAGES = ("/", "/signin", "/profile", "/welcome", "/status", "/docs/api", "/docs/migrate", "/api/schema")
SIGN_IN = ("/oidc/authenticate/", "/oidc/callback/", "/oidc/logout/", "/oidc/backchannel-logout/")
ADMIN = ("/admin/login/", "/admin/", "/admin/orgs/organization/")
# Steps of OAuth and what has a gate keep the exact limiter.
EXACT = ("/device", "/oauth/authorize", "/oauth/authorize/consent", "/oauth/revoke", "/api/profile")
TIMEOUT_S = 1.0
PROCESSES = 2


@pytest.fixture(autouse=True)
def three_a_minute(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A window that no other test counts in."""
    hold_window(monkeypatch)
    settings.BACKSTOP = Rule(f"pages {uuid.uuid4()}", limit=3, window_s=60)
    return settings.BACKSTOP


def look(browser: Browser | None = None, path: str = "/docs/migrate", **peer: str) -> HttpResponse:
    return (browser or Browser()).get(path, **peer)


def statuses(times: int, browser: Browser | None = None, **peer: str) -> list[int]:
    return [look(browser, **peer).status_code for _ in range(times)]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The groups that the library was asked to count."""
    groups: list[str] = []
    get_usage = page_limit.get_usage

    def recorded(request: Any, *, group: str, **arguments: Any) -> Any:
        groups.append(group)
        return get_usage(request, group=group, **arguments)

    recorded.ALL = get_usage.ALL  # type: ignore[attr-defined]
    monkeypatch.setattr(page_limit, "get_usage", recorded)
    return groups


@pytest.mark.parametrize("path", [*PAGES, *SIGN_IN, *ADMIN])
def test_the_library_counts_pages(db: None, counted: list[str], three_a_minute: Rule, path: str) -> None:
    look(path=path)
    assert three_a_minute.name in counted


@pytest.mark.parametrize("path", EXACT)
def test_the_exact_limiter_counts_steps_of_oauth_and_the_api(db: None, counted: list[str], path: str) -> None:
    look(path=path)
    assert counted == []


def test_a_refusal_has_the_documented_headers(db: None, three_a_minute: Rule) -> None:
    heard = [look() for _ in range(3)]
    refused = look()
    assert [response.status_code for response in heard] == [200] * 3
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60
    assert refused["RateLimit-Policy"] == f'"{three_a_minute.name}";q=3;w=60'
    assert refused["RateLimit"] == f'"{three_a_minute.name}";r=0;t={refused["Retry-After"]}'
    assert (refused["X-RateLimit-Limit"], refused["X-RateLimit-Remaining"]) == ("3", "0")
    assert refused["X-RateLimit-Reset"] == refused["Retry-After"]
    assert "Too many requests" in refused.content.decode()


def test_a_person_is_counted_apart_from_their_address_and_from_others(cast: Cast) -> None:
    assert statuses(4) == [200, 200, 200, 429]
    assert statuses(4, cast.client("owner")) == [200, 200, 200, 429]
    assert statuses(1, cast.client("owner"), REMOTE_ADDR="198.51.100.7") == [429]
    assert statuses(1, cast.client("other_owner")) == [200]


def test_the_address_is_the_rightmost_hop_that_is_no_trusted_proxy(db: None, settings: LazySettings) -> None:
    forged = [look(HTTP_X_FORWARDED_FOR=f"203.0.113.{number}").status_code for number in range(4)]
    assert forged == [200, 200, 200, 429]
    settings.TRUSTED_PROXIES = ("127.0.0.1",)
    for number in range(3):
        assert look(HTTP_X_FORWARDED_FOR=f"9.9.9.{number}, 203.0.113.9").status_code == 200
    assert look(HTTP_X_FORWARDED_FOR="8.8.8.8, 203.0.113.9").status_code == 429
    assert look(HTTP_X_FORWARDED_FOR="203.0.113.10").status_code == 200


def test_a_network_of_64_bits_is_one_address(db: None) -> None:
    found = [look(REMOTE_ADDR=f"2001:db8:1:2::{number}").status_code for number in range(4)]
    assert found == [200, 200, 200, 429]
    assert look(REMOTE_ADDR="2001:db8:1:3::1").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_forty_at_once_the_limit_passes(three_a_minute: Rule) -> None:
    responses = at_once(*[lambda: look()] * 40)
    found = [getattr(response, "status_code", response) for response in responses]
    assert sorted(found, key=str) == [200] * 3 + [429] * 37


def test_several_processes_without_redis_are_counted_by_the_exact_limiter(db: None, settings: LazySettings) -> None:
    settings.RATELIMIT_ENABLE = False
    assert statuses(4) == [200, 200, 200, 429]
    assert backend.current().peek(settings.BACKSTOP, "ip:127.0.0.1").remaining == 0


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def lead_cache_to(settings: LazySettings, port: int) -> str:
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
    options = {
        "pool_class": "gateway.lib.shared_redis_pool.SharedRedisPool",
        "socket_timeout": TIMEOUT_S,
        "socket_connect_timeout": TIMEOUT_S,
    }
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": settings.REDIS_URL,
            "OPTIONS": options,
        }
    }
    return str(settings.REDIS_URL)


@pytest.mark.parametrize("port", ["closed_port", "silent_port"])
def test_without_the_cache_the_exact_limiter_counts(
    db: None, settings: LazySettings, request: pytest.FixtureRequest, port: str
) -> None:
    backend.current()  # made before the address changes
    lead_cache_to(settings, request.getfixturevalue(port))
    assert statuses(4) == [200, 200, 200, 429]


@pytest.mark.parametrize("port", ["closed_port", "silent_port"])
def test_without_redis_a_page_waits_once_and_has_the_share_of_a_process(
    db: None, settings: LazySettings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    """Neither unlimited nor an outage. Spec: D23"""
    url = lead_cache_to(settings, request.getfixturevalue(port))
    settings.BACKSTOP = Rule(f"shared {uuid.uuid4()}", limit=4, window_s=60)
    store = FallbackStore(
        RedisStore(url, backend.new_value, operation_s=TIMEOUT_S, thread_s=TIMEOUT_S), processes=PROCESSES
    )
    monkeypatch.setattr(backend, "current", lambda: store)
    try:
        waits_s, found = [], []
        for _ in range(4):
            began_s = time.monotonic()
            found.append(look().status_code)
            waits_s.append(time.monotonic() - began_s)
        assert found == [200, 200, 429, 429]
        assert waits_s[0] < 4 * TIMEOUT_S + 2.0
        assert store.is_away()
        if port == "silent_port":
            assert min(waits_s[1:]) < TIMEOUT_S  # nothing waits for the cache any more
    finally:
        store.stop()
