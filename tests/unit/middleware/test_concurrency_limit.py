"""Pages wait for room in the loop, in order, for a while; who dawdles or leaves holds none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway import asgi
from gateway.lib import body_budgets
from gateway.lib.byte_budget import STEP_BYTES
from gateway.lib.machine_paths import OAUTH_ENDPOINTS
from gateway.middleware import concurrency_limit
from gateway.middleware.body_limit import BodyLimit
from gateway.middleware.concurrency_limit import ConcurrencyLimit
from gateway.middleware.refusal import Message, Receive, Refusal, Send
from oauth_ext.features import ENDPOINTS_ON

SCOPE: Message = {"type": "http", "headers": []}


class Pages:
    """Counts who is inside at once; answers when told to."""

    def __init__(self) -> None:
        self.inside = self.most_inside = 0
        self.bodies: list[bytes] = []
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            self.bodies.append((await receive())["body"])
            await self.go_on.wait()
            if self.bodies[-1] == b"fail":
                raise RuntimeError("a page that breaks")
            await send({"type": "http.response.start", "status": 200, "headers": []})
        finally:
            self.inside -= 1


class Visitor:
    """One request, its body in as many messages as given; silent afterwards."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])


def body(content: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


def visit(application: Any, *messages: Message, path: str = "/") -> tuple[Visitor, asyncio.Task[None]]:
    visitor = Visitor(*messages)
    return visitor, asyncio.ensure_future(application({**SCOPE, "path": path}, visitor.receive, visitor.send))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_more_than_the_limit_at_once_and_nobody_is_lost() -> None:
    pages = Pages()
    limit = ConcurrencyLimit(pages, size=3, wait_s=60)
    visits = [visit(limit, body(b"a%d" % number, more=True), body(b"b")) for number in range(20)]
    await settle()
    assert pages.inside == 3
    pages.go_on.set()
    await asyncio.gather(*(task for _, task in visits))
    assert pages.most_inside == 3
    assert [visitor.status for visitor, _ in visits] == [200] * 20
    assert pages.bodies == [b"a%db" % number for number in range(20)]


async def test_without_a_slot_in_time_the_answer_says_when_to_come_back() -> None:
    pages = Pages()
    application = BodyLimit(ConcurrencyLimit(pages, size=1, wait_s=0), max_bytes=100)
    _, first = visit(application, body(b""))
    await settle()
    late, second = visit(application, body(b""))
    await second
    assert late.status == 503
    assert dict(late.sent[0]["headers"])[b"retry-after"] == b"2"
    assert json.loads(late.sent[1]["body"])["error"] == "overloaded"
    pages.go_on.set()
    await first
    next_one, third = visit(application, body(b""))
    await third
    assert next_one.status == 200


async def test_the_queue_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency_limit, "MAX_WAITING", 2)
    pages = Pages()
    application = BodyLimit(ConcurrencyLimit(pages, size=1, wait_s=60), max_bytes=100)
    visits = [visit(application, body(b"")) for _ in range(4)]
    await settle()
    assert [visitor.status for visitor, task in visits if task.done()] == [503]
    pages.go_on.set()
    await asyncio.gather(*(task for _, task in visits))
    assert sorted(visitor.status for visitor, _ in visits) == [200, 200, 200, 503]


async def test_who_dawdles_or_leaves_or_breaks_holds_no_slot() -> None:
    pages = Pages()
    pages.go_on.set()
    limit = ConcurrencyLimit(pages, size=1, wait_s=60)
    _, slow = visit(limit, body(b"half", more=True))
    _, gone = visit(limit, body(b"half", more=True), {"type": "http.disconnect"})
    _, broken = visit(limit, body(b"fail"))
    _, cancelled = visit(limit, body(b""))
    cancelled.cancel()
    with pytest.raises(RuntimeError):
        await broken
    await gone
    well, task = visit(limit, body(b"well"))
    await task
    assert well.status == 200
    assert pages.bodies == [b"fail", b"well"]
    slow.cancel()


async def test_pages_that_wait_keep_no_client_from_its_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "_pages", full := Pages())
    monkeypatch.setattr(asgi, "_oauth", tokens := Pages())
    tokens.go_on.set()
    visits = {
        path: visit(asgi.application, body(b""), path=path)
        for path in ("/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/device_authorization")
    }
    _, page = visit(asgi.application, body(b""), path="/oauth/authorize")
    await asyncio.gather(*(task for _, task in visits.values()))
    assert {visitor.status for visitor, _ in visits.values()} == {200}
    assert full.inside == 1
    full.go_on.set()
    await page


def test_the_limits_are_two() -> None:
    assert asgi._oauth._application is not asgi._pages._application
    assert set(ENDPOINTS_ON.values()) - OAUTH_ENDPOINTS == {"/oauth/authorize", "/.well-known/jwks.json"}


def from_address(address: str) -> Message:
    return {**SCOPE, "client": (address, 4711)}


LARGE: Message = {"type": "http.request", "body": b"x" * 100_000}


@pytest.fixture
def small_budget(settings: Any) -> None:
    """Room for two bodies of LARGE, of one address each, and none in reserve."""
    settings.PAGE_BYTES, settings.PAGE_BYTES_RESERVED = 400_000, 0
    settings.LARGE_BODY_WAIT_S = 0.01


@pytest.mark.usefixtures("small_budget")
async def test_large_bodies_of_one_address_leave_bytes_for_others() -> None:
    """Taken before the place: who waits for one keeps no more than its address may."""
    pages = Pages()
    limit = ConcurrencyLimit(pages, size=4, wait_s=5.0)
    first, second, other, small = Visitor(LARGE), Visitor(LARGE), Visitor(LARGE), Visitor({"type": "http.request"})
    budget = body_budgets.pages()

    def enter(visitor: Visitor, address: str) -> asyncio.Task[None]:
        return asyncio.ensure_future(limit(from_address(address), visitor.receive, visitor.send))

    tasks = [enter(first, "203.0.113.9")]
    while pages.inside < 1:
        await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        async with asyncio.timeout(60):
            await enter(second, "203.0.113.9")
    assert (refused.value.status, refused.value.retry_after_s) == (503, 2)
    tasks += [enter(other, "198.51.100.7"), enter(small, "203.0.113.9")]
    while pages.inside < 3:
        await asyncio.sleep(0)
    assert budget.held == 2 * 100_000
    pages.go_on.set()
    await asyncio.gather(*tasks)
    assert [visitor.status for visitor in (first, other, small)] == [200] * 3
    assert budget.held == 0


async def test_a_sender_that_dawdles_holds_what_it_has_sent() -> None:
    pages = Pages()
    limit = ConcurrencyLimit(pages, size=4, wait_s=5.0)
    dawdling, other = Visitor({**LARGE, "more_body": True}), Visitor(LARGE)
    slow = asyncio.ensure_future(limit(from_address("203.0.113.9"), dawdling.receive, dawdling.send))
    budget = body_budgets.pages()
    await settle()
    assert budget.held == 100_000 + STEP_BYTES
    pages.go_on.set()
    slow.cancel()
    await asyncio.wait([slow])
    await limit(from_address("198.51.100.7"), other.receive, other.send)
    assert (other.status, budget.held) == (200, 0)


@pytest.mark.usefixtures("small_budget")
async def test_large_bodies_of_strangers_leave_calls_their_bytes() -> None:
    pages = Pages()
    limit = ConcurrencyLimit(pages, size=4, wait_s=5.0)
    visitors = [Visitor(LARGE) for _ in range(3)]
    tasks = [
        asyncio.ensure_future(limit(from_address(f"203.0.113.{number}"), visitor.receive, visitor.send))
        for number, visitor in enumerate(visitors)
    ]
    while pages.inside < 2:
        await asyncio.sleep(0)
    with pytest.raises(Refusal):
        await tasks[2]
    assert body_budgets.inbound().new_reservation("acme").try_grow(1_000_000, 1_000_000)
    pages.go_on.set()
    await asyncio.gather(*tasks[:2])
