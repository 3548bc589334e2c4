"""A request is judged by its head before its body is read, on real connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from gateway.asgi import application
from gateway.coordination.rules import Rule
from gateway.lib import body_budgets
from gateway.lib.byte_budget import FREE_BYTES, STEP_BYTES
from orgs.models import Membership, Organization
from orgs.roles import Role
from proxy import runtime
from tests.api.proxy.traces import until
from tests.factories.cast import make_person
from tests.factories.tenant import Tenant, make_tenant
from tests.fakes.served_app import served

LARGE = 4 * 1024 * 1024
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture
async def port(tenant: Tenant) -> AsyncIterator[int]:
    """The gateway behind its own server."""
    async with served(application, access_log=False) as port:
        yield port
    await runtime.stop()


class Connection:
    """A client that sends what it likes and reads one answer after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *parts: bytes) -> None:
        self.writer.writelines(parts)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(60):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = [line.split(": ", 1) for line in lines[1:] if line]
            headers = {name.lower(): value for name, value in pairs}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(lines[0].split()[1]), headers, body

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


Connect = Callable[[], Awaitable[Connection]]


@pytest.fixture
async def connect(port: int) -> AsyncIterator[Connect]:
    """Opens connections, which are closed after the test."""
    opened: list[Connection] = []

    async def connected() -> Connection:
        opened.append(Connection(*await asyncio.open_connection("127.0.0.1", port)))
        return opened[-1]

    yield connected
    for each in opened:
        await each.close()


def head(bearer: str | None, length: int | None = LARGE, *, method: str = "POST", **changes: str) -> bytes:
    """The head of a request; `changes` are headers, with underscores for hyphens, "" for none."""
    sent = {"Host": "testserver", "Content-Type": "application/json"}
    sent |= {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    sent |= {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)}
    sent |= {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{method} /v1/mcp HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("length", [LARGE, None], ids=["declared", "chunked"])
@pytest.mark.parametrize("bearer", [None, "nonsense", "cak_" + "a" * 12 + "_" + "b" * 43])
async def test_a_refusal_comes_without_the_body(connect: Connect, bearer: str | None, length: int | None) -> None:
    client = await connect()
    await client.send(head(bearer, length, Expect="100-continue"))
    status, headers, _ = await client.answer()
    assert status == 401, "and no 100 Continue"
    assert "www-authenticate" in headers


async def test_a_key_with_another_secret_is_looked_up_before_the_body(connect: Connect, tenant: Tenant) -> None:
    client = await connect()
    await client.send(head(tenant.agent_key[:-1] + ("a" if tenant.agent_key[-1] != "a" else "b")))
    assert (await client.answer())[0] == 401


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Host": "evil.example"}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"method": "PUT"}, 405),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Encoding": "gzip"}, 415),
        ({"Accept": "image/png"}, 406),
        ({"Content_Length": str(LARGE + 1)}, 413),
    ],
)
async def test_what_the_head_shows_is_refused_on_the_head(
    connect: Connect, tenant: Tenant, changes: dict[str, str], status: int
) -> None:
    client = await connect()
    await client.send(head(tenant.agent_key, **changes))  # type: ignore[arg-type]
    assert (await client.answer())[0] == status


@pytest.mark.parametrize("bearer", [None, "nonsense"])
async def test_size_comes_before_authentication(connect: Connect, bearer: str | None) -> None:
    client = await connect()
    await client.send(head(bearer, LARGE + 1))
    status, headers, _ = await client.answer()
    assert (status, headers["connection"]) == (413, "close")
    assert await client.reader.read() == b""


async def test_a_caller_past_the_limit_sends_no_large_body(connect: Connect, tenant: Tenant, settings: Any) -> None:
    settings.BACKSTOP = Rule("requests", limit=1, window_s=60)
    client = await connect()
    await client.send(head(tenant.agent_key, len(PING)), PING)
    assert (await client.answer())[0] == 200
    await client.send(head(tenant.agent_key))
    status, headers, _ = await client.answer()
    assert status == 429
    assert int(headers["retry-after"]) > 0


async def test_an_organization_past_its_bytes_sends_no_large_body(
    connect: Connect, tenant: Tenant, other_tenant: Tenant, settings: Any
) -> None:
    settings.LARGE_BODIES = Rule("large-bodies", limit=3, window_s=60)
    client = await connect()
    await client.send(head(tenant.agent_key), PING + b" " * (LARGE - len(PING)))
    assert (await client.answer())[0] == 200
    await client.send(head(tenant.agent_key))
    status, headers, _ = await client.answer()
    assert status == 429
    assert int(headers["retry-after"]) > 0
    other = await connect()
    await other.send(head(other_tenant.agent_key), PING + b" " * (LARGE - len(PING)))
    assert (await other.answer())[0] == 200


@pytest.mark.parametrize("length", [LARGE, None], ids=["declared", "chunked"])
async def test_a_body_that_comes_later_is_read(connect: Connect, tenant: Tenant, length: int | None) -> None:
    body = PING + b" " * (LARGE - len(PING))
    client = await connect()
    for _ in range(2):
        await client.send(head(tenant.agent_key, length))
        for begin in range(0, LARGE, 1_000_000):
            part = body[begin : begin + 1_000_000]
            await client.send(part if length else b"%x\r\n%b\r\n" % (len(part), part))
        await client.send(b"" if length else b"0\r\n\r\n")
        status, _, answer = await client.answer()
        assert (status, json.loads(answer)["result"]) == (200, {})
    assert body_budgets.inbound().held == 0


async def test_the_rest_of_a_refused_body_is_dropped_and_the_connection_goes_on(
    connect: Connect, tenant: Tenant
) -> None:
    client = await connect()
    await client.send(head(None, 1_000_000))
    assert (await client.answer())[0] == 401
    await client.send(b"x" * 1_000_000, head(tenant.agent_key, len(PING)), PING)
    assert (await client.answer())[0] == 200


async def test_a_refused_body_without_end_ends_the_connection(connect: Connect) -> None:
    client = await connect()
    await client.send(head(None, None))
    assert (await client.answer())[0] == 401
    part = b"%x\r\n%b\r\n" % (1_000_000, b"x" * 1_000_000)
    with pytest.raises(ConnectionError):
        await client.send(*[part] * 100)


async def test_a_small_body_that_comes_later_needs_no_reservation(connect: Connect, tenant: Tenant) -> None:
    body_budgets.inbound().new_reservation(tenant.organization.id).settle(1_000 * LARGE)
    client = await connect()
    await client.send(head(tenant.agent_key, FREE_BYTES), PING)
    await client.send(b" " * (FREE_BYTES - len(PING)))
    assert (await client.answer())[0] == 200


@pytest.fixture
def small_budget(settings: Any) -> None:
    """Room for four of the largest bodies, one of them in reserve."""
    settings.INBOUND_BYTES, settings.INBOUND_BYTES_RESERVED = 4 * LARGE, LARGE
    settings.LARGE_BODY_WAIT_S = 60.0


def held_by(tenant: Tenant) -> int:
    return body_budgets.inbound().held_by(tenant.organization.id)


@pytest.mark.usefixtures("small_budget")
async def test_a_sender_that_dawdles_holds_what_it_has_sent(connect: Connect, tenant: Tenant) -> None:
    """The length that its head declares does not matter."""
    client = await connect()
    await client.send(head(tenant.agent_key), b" " * 100_000)
    await until(lambda: held_by(tenant))
    assert 64 * 1024 < held_by(tenant) <= 100_000 + STEP_BYTES


@pytest.mark.usefixtures("small_budget")
async def test_one_organization_does_not_use_up_anothers_share(
    connect: Connect, tenant: Tenant, other_tenant: Tenant, settings: Any
) -> None:
    settings.LARGE_BODY_WAIT_S = 0.1
    kept = body_budgets.inbound().new_reservation(tenant.organization.id)
    kept.settle(4 * LARGE)
    large = await connect()
    await large.send(head(tenant.agent_key), b" " * 100_000)
    status, headers, body = await large.answer()
    assert (status, headers["retry-after"], json.loads(body)["error"]) == (503, "2", "overloaded")
    assert held_by(tenant) == kept.bytes
    small = await connect()
    await small.send(head(tenant.agent_key, len(PING)), PING)
    assert (await small.answer())[0] == 200, "what is small needs no room"
    other = await connect()
    await other.send(head(other_tenant.agent_key), PING + b" " * (LARGE - len(PING)))
    assert (await other.answer())[0] == 200
    kept.release()
    again = await connect()
    await again.send(head(tenant.agent_key), PING + b" " * (LARGE - len(PING)))
    assert (await again.answer())[0] == 200


@pytest.mark.usefixtures("small_budget")
async def test_bodies_that_do_not_fit_together_are_read_one_after_the_other(connect: Connect, tenant: Tenant) -> None:
    body = PING + b" " * (LARGE - len(PING))

    async def call() -> int:
        client = await connect()
        await client.send(head(tenant.agent_key), body)
        return (await client.answer())[0]

    assert await asyncio.gather(*(call() for _ in range(8))) == [200] * 8
    assert body_budgets.inbound().held == 0


@pytest.fixture
def tenants(tenant: Tenant, other_tenant: Tenant) -> list[Tenant]:
    """Five organizations."""
    more = []
    for name in ("Hooli", "Initech", "Umbrella"):
        organization, owner = Organization.objects.create(name=name), make_person(f"owner_of_{name}")
        Membership.objects.create(organization=organization, user=owner, role=Role.OWNER.value)
        more.append(make_tenant(organization, owner))
    return [other_tenant, *more, tenant]


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("sent", [100_000, LARGE - 1], ids=["little", "nearly all"])
async def test_four_organizations_whose_senders_dawdle_leave_a_fifth_its_bytes(
    connect: Connect, tenants: list[Tenant], sent: int
) -> None:
    """Their twelve bodies together are three times as large as all the room that there is."""
    *dawdling, fifth = tenants

    async def dawdle(tenant: Tenant) -> None:
        client = await connect()
        await client.send(head(tenant.agent_key), b" " * sent)  # as far as it is taken
        await client.reader.read(1)

    senders = [asyncio.ensure_future(dawdle(tenant)) for tenant in dawdling for _ in range(3)]
    await until(lambda: all(held_by(tenant) >= 3 * min(sent, 200_000) for tenant in dawdling))
    client = await connect()
    await client.send(head(fifth.agent_key, 200_000), PING + b" " * 99_000)
    await until(lambda: held_by(fifth))
    await client.send(b" " * (101_000 - len(PING)))
    assert (await client.answer())[0] == 200
    assert not any(each.done() for each in senders), "none of them had to be refused for it"
    for each in senders:
        each.cancel()
    await asyncio.gather(*senders, return_exceptions=True)
