"""An address that keeps presenting unknown bearers causes no look-ups without end; known callers are not held up."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from gateway.asgi import application
from gateway.coordination.rules import Rule
from gateway.lib import clock, secrets
from gateway.lib.json_statement import JsonStatement
from oauth_ext.bearer import RevokedBearer
from oauth_ext.models import AccessToken
from proxy import failed_auth_throttle, runtime
from proxy.caller_cache import UNKNOWN_AT_ONCE
from proxy.freshness import Freshness
from proxy.hot_path_database import HotPathDatabase
from tests.api.proxy.conftest import Agent, access_token
from tests.factories.tenant import Tenant
from tests.factories.threads import in_thread

ELSEWHERE = "198.51.100.7"
LIMIT = 4


@pytest.fixture(autouse=True)
def few(settings: Any, request: pytest.FixtureRequest) -> None:
    """A window that no other test has counted in."""
    name = f"refused {request.node.name} {clock.now().timestamp()}"
    settings.FAILED_AUTHS = Rule(name, limit=LIMIT, window_s=60)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How many bearers were looked up."""
    seen: Counter[str] = Counter()
    original = HotPathDatabase.read

    async def recorded(database: HotPathDatabase, statement: JsonStatement, value: str) -> bytes | None:
        seen["sent"] += 1
        return await original(database, statement, value)

    with monkeypatch.context() as patch:
        patch.setattr(HotPathDatabase, "read", recorded)
        yield seen


def unknown_key() -> str:
    """An agent key as they are spelled, which nobody has."""
    return f"cak_{secrets.random_base62(12)}_{secrets.random_base62(43)}"


async def ping_from(address: str, bearer: str) -> int:
    """The status that somebody at another address gets."""
    transport = httpx.ASGITransport(app=application, client=(address, 4711))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as http:
        return (await Agent(http).rpc(bearer, "ping")).status_code


async def shut_out(agent: Agent) -> None:
    """The window of our address is full, and this process has noticed."""
    statuses = [(await agent.rpc(unknown_key(), "ping")).status_code for _ in range(LIMIT + 1)]
    assert statuses == [401] * LIMIT + [429]


async def test_after_so_many_none_is_looked_up(agent: Agent, tenant: Tenant, lookups: Counter[str]) -> None:
    await agent.rpc(unknown_key(), "ping", path="/v1/fake/mcp")  # refused unread there, so it does not count
    await shut_out(agent)
    assert lookups["sent"] >= LIMIT
    lookups.clear()
    answers = [await agent.rpc(unknown_key(), "ping") for _ in range(20)]
    assert {answer.status_code for answer in answers} == {429}
    assert lookups["sent"] == 0
    assert await ping_from(ELSEWHERE, unknown_key()) == 401


async def test_the_refusal_has_the_documented_shape(agent: Agent, tenant: Tenant) -> None:
    await shut_out(agent)
    refused = await agent.rpc(unknown_key(), "tools/list")
    assert set(refused.json()) == {"error", "error_description"}
    assert refused.json()["error"] == "rate_limited"
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["X-RateLimit-Limit"] == str(LIMIT)
    assert refused.headers["RateLimit"].startswith('"refused')
    assert "WWW-Authenticate" not in refused.headers
    by_cli = await agent.cli("x.y.z", "list")
    assert (by_cli.status_code, list(by_cli.json())) == (429, ["error"])
    assert {"X-Auth-Ms", "X-Total-Ms"} <= {name.title() for name in by_cli.headers}


async def test_callers_we_know_are_served_on(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
    await shut_out(agent)
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
    # Also when their rows have aged.
    monkeypatch.setattr(Freshness, "is_confirmed_by_epochs", lambda *_: False)
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200
    assert (await agent.rpc(other_tenant.agent_key, "ping")).status_code == 429
    assert await ping_from(ELSEWHERE, other_tenant.agent_key) == 200


async def test_a_token_that_we_signed_is_never_refused_unread(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed, foreign, revoked = await in_thread(
        lambda: (access_token(tenant), access_token(other_tenant), access_token(tenant))
    )
    await in_thread(lambda: AccessToken.objects.filter(token_checksum=secrets.sha256(revoked).hex()).delete())
    await shut_out(agent)
    assert (await agent.rpc(signed, "ping")).status_code == 200
    header, payload, signature = foreign.split(".")
    for forged in (f"{header}.{payload}.{signature[::-1]}", f"{header}.{payload[::-1]}.{signature}", "x.y.z"):
        assert (await agent.rpc(forged, "ping")).status_code == 429
    assert (await agent.rpc(revoked, "ping")).status_code == 429
    assert (await agent.rpc(foreign, "ping")).status_code == 200
    real_now = clock.now
    expired = await in_thread(lambda: access_token(tenant))
    monkeypatch.setattr(clock, "now", lambda: real_now() + timedelta(hours=2))
    assert (await agent.rpc(expired, "ping")).status_code == 401  # so that its client asks for a new one


async def test_a_revoked_token_is_looked_up_once(
    agent: Agent, tenant: Tenant, other_tenant: Tenant, lookups: Counter[str], settings: Any
) -> None:
    """A revoked token is remembered for the hour in which it would be valid, so repeated use reads no database."""
    settings.FAILED_AUTHS = Rule(f"many {clock.now().timestamp()}", limit=1_000, window_s=60)
    revoked, valid, foreign = await in_thread(
        lambda: (access_token(tenant), access_token(tenant), access_token(other_tenant))
    )
    assert (await agent.rpc(revoked, "ping")).status_code == 200
    await in_thread(lambda: AccessToken.objects.filter(token_checksum=secrets.sha256(revoked).hex()).delete())
    runtime.current().caller_cache._callers.clear()
    for token in (valid, foreign):
        assert (await agent.rpc(token, "ping")).status_code == 200
    first = await agent.rpc(revoked, "ping")
    assert first.status_code == 401
    lookups.clear()
    for _ in range(20):
        again = await agent.rpc(revoked, "ping")
        assert (again.status_code, again.json()) == (401, first.json())
    assert lookups["sent"] == 0
    for token in (valid, foreign):
        assert (await agent.rpc(token, "ping")).status_code == 200


async def test_revoked_tokens_count_for_their_address(agent: Agent, tenant: Tenant) -> None:
    revoked = await in_thread(lambda: access_token(tenant))
    await in_thread(lambda: AccessToken.objects.filter(token_checksum=secrets.sha256(revoked).hex()).delete())
    statuses = [(await agent.rpc(revoked, "ping")).status_code for _ in range(LIMIT + 1)]
    assert statuses == [401] * LIMIT + [429]


def test_the_memory_of_revoked_tokens_is_bounded_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_auth_throttle, "MAX_REVOKED", 2)
    known = failed_auth_throttle.RevokedTokens()
    now = clock.now()
    for digest in (b"1", b"2", b"3"):
        known.add(digest, RevokedBearer(now + timedelta(seconds=30)))
    known.check(b"1")
    for digest in (b"2", b"3"):
        with pytest.raises(RevokedBearer):
            known.check(digest)
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(seconds=31))
    known.check(b"2")
    assert list(known._expires_at) == [b"3"]


async def test_the_address_is_heard_again(agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    await shut_out(agent)
    refused = runtime.current().caller_cache._failed_auth
    monkeypatch.setattr(refused, "_monotonic", lambda: time.monotonic() + 61)
    assert (await agent.rpc(tenant.agent_key, "ping")).status_code == 200


async def test_many_at_once_are_not_looked_up_one_by_one(agent: Agent, tenant: Tenant, lookups: Counter[str]) -> None:
    asked: list[Awaitable[httpx.Response]] = [agent.rpc(unknown_key(), "ping") for _ in range(200)]
    statuses = Counter(answer.status_code for answer in await asyncio.gather(*asked))
    assert statuses[401] == LIMIT
    assert statuses[429] == 200 - LIMIT
    # Those that were under way when the window filled were looked up, and no others.
    assert lookups["sent"] <= LIMIT + UNKNOWN_AT_ONCE


async def test_what_is_counted(agent: Agent, tenant: Tenant) -> None:
    expired, revoked = await in_thread(lambda: (access_token(tenant), access_token(tenant)))
    await in_thread(lambda: AccessToken.objects.filter(token_checksum=secrets.sha256(revoked).hex()).delete())
    real_now = clock.now
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now", lambda: real_now() + timedelta(hours=2))
        for _ in range(LIMIT + 2):  # every client brings one now and then, and no row is read for it
            assert (await agent.rpc(expired, "ping")).status_code == 401
    for bearer in (revoked, expired[:-4] + "AAAA", "x", "x.y.z"):
        assert (await agent.rpc(bearer, "ping")).status_code == 401
    assert (await agent.rpc(revoked, "ping")).status_code == 429


async def test_a_household_is_one_address(agent: Agent, tenant: Tenant) -> None:
    statuses = [await ping_from(f"2001:db8:1:2::{number}", unknown_key()) for number in range(LIMIT + 1)]
    assert statuses == [401] * LIMIT + [429]
    assert await ping_from("2001:db8:1:3::1", unknown_key()) == 401


async def test_what_a_client_writes_is_no_address(agent: Agent, tenant: Tenant, settings: Any) -> None:
    async def rotating() -> list[int]:
        written = [{"X-Forwarded-For": f"203.0.113.{number}"} for number in range(LIMIT + 1)]
        return [(await agent.rpc(unknown_key(), "ping", **header)).status_code for header in written]

    assert await rotating() == [401] * LIMIT + [429]
    settings.TRUSTED_PROXIES = ("127.0.0.1",)
    assert await rotating() == [401] * (LIMIT + 1)


async def test_the_memory_of_addresses_is_bounded(
    agent: Agent, tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FAILED_AUTHS = Rule(settings.FAILED_AUTHS.name, limit=1, window_s=60)
    monkeypatch.setattr(failed_auth_throttle, "MAX_ADDRESSES", 2)
    for number in range(3):
        for _ in range(2):
            await ping_from(f"192.0.2.{number}", unknown_key())
    assert list(runtime.current().caller_cache._failed_auth._blocked_until_s) == ["ip:192.0.2.1", "ip:192.0.2.2"]
