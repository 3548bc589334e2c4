"""An export as its reader sees it over ASGI: beside the pages, with constant memory, ended by whoever leaves."""

from __future__ import annotations

import asyncio
import csv
import gc
import io
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import connection

from audit import log_pages
from gateway.asgi import django_application
from gateway.middleware.concurrency_limit import ConcurrencyLimit
from gateway.middleware.refusal import Message
from gateway.web.csv_export import exports
from tests.api.audit.log_rows import add_calls
from tests.factories.api import Api
from tests.factories.cast import signed_in_session

ROWS = 60
PATIENCE_S = 120.0


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "EXPORT_PAGE_ROWS", 10)


@pytest.fixture(autouse=True)
def _every_slot_is_given_back() -> Iterator[None]:
    yield
    gc.collect()
    assert not exports.taken


@pytest.fixture
def session(committed_api: Api) -> str:
    """The owner's, in an organization with ROWS calls."""
    add_calls(committed_api.cast.org.id, ROWS)
    add_calls(committed_api.cast.other_org.id, 1, user_label="Foreign")
    return signed_in_session(committed_api.cast.user("owner"))


class Reader:
    """A client that takes a message of the answer when told to, and can leave."""

    def __init__(self, application: Any, target: str, session: str) -> None:
        path, query = urlsplit(target).path, urlsplit(target).query
        cookie = f"{settings.SESSION_COOKIE_NAME}={session}".encode()
        scope: Message = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"testserver"), (b"cookie", cookie)],
            "server": ("testserver", 80),
            "client": ("192.0.2.1", 1),
            "scheme": "http",
            "http_version": "1.1",
        }
        self.messages: list[Message] = []
        self._offered = 0
        self._asked = False
        self._left = asyncio.Event()
        self._may_send = asyncio.Semaphore(0)
        self._changed = asyncio.Event()
        self.task = asyncio.ensure_future(application(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._offered += 1
        self._changed.set()
        await self._may_send.acquire()
        self.messages.append(message)
        self._changed.set()

    async def take(self, number: int) -> None:
        """So many more messages of the answer."""
        wanted = len(self.messages) + number
        for _ in range(number):
            self._may_send.release()
        await self._until(lambda: len(self.messages) >= wanted)

    async def rest(self) -> None:
        """Take nothing more; the next message is made by now."""
        await self._until(lambda: self._offered > len(self.messages))

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def read_all(self) -> bytes:
        for _ in range(1_000):
            self._may_send.release()
        async with asyncio.timeout(PATIENCE_S):
            await self.task
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    async def leave(self) -> None:
        self._left.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])


def one_page_at_once() -> ConcurrencyLimit:
    return ConcurrencyLimit(django_application, size=1, wait_s=PATIENCE_S)  # type: ignore[arg-type]


def names(body: bytes) -> list[str]:
    assert b"Foreign" not in body
    return [row["request_id"] for row in csv.DictReader(io.StringIO(body.decode(), newline=""))]


async def test_the_whole_log_arrives(session: str) -> None:
    reader = Reader(one_page_at_once(), "/api/audit?format=csv", session)
    body = await reader.read_all()
    assert names(body) == [f"r-{number}" for number in range(ROWS)]
    assert (reader.status, dict(reader.messages[0]["headers"])[b"X-Total-Count"]) == (200, str(ROWS).encode())
    assert reader.messages[-1].get("more_body", False) is False
    assert not exports.taken


async def test_an_export_holds_no_place_of_a_page(session: str) -> None:
    """One page runs at once, and another one is answered while the reader of an export rests."""
    application = one_page_at_once()
    slow = Reader(application, "/api/audit?format=csv", session)
    await slow.take(2)
    for _ in range(2):
        page = Reader(application, "/api/audit?limit=1", session)
        assert b'"total":60' in (await page.read_all()).replace(b" ", b"")
    assert not slow.task.done()
    assert names(await slow.read_all())[-1] == f"r-{ROWS - 1}"


async def test_a_slot_of_a_page_is_released_once(session: str) -> None:
    """Two exports end, and still one page runs at once."""
    application = one_page_at_once()
    for _ in range(2):
        await Reader(application, "/api/audit?format=csv", session).read_all()
    assert application._slots._free == 1


async def test_a_reader_that_leaves_ends_the_export(session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = 0
    original = log_pages._pages

    def counted(*arguments: Any) -> Iterator[Any]:
        nonlocal pages
        for page in original(*arguments):
            pages += 1
            yield page

    monkeypatch.setattr(log_pages, "_pages", counted)
    reader = Reader(one_page_at_once(), "/api/audit?format=csv", session)
    await reader.take(3)
    assert exports.taken.total() == 1
    await reader.leave()
    assert not exports.taken
    assert 1 <= pages <= 2, "no page is made that nobody asked for"


async def test_readers_that_stop_leave_the_database_to_others(session: str) -> None:
    """Between two pages an export holds no connection: the thread of the request gives it back."""
    if connection.vendor != "postgresql":
        pytest.skip("the file of the embedded default has no pool")
    application = one_page_at_once()
    before = held_connections()
    readers = [Reader(application, "/api/audit?format=csv", session) for _ in range(2)]
    for reader in readers:
        await reader.take(2)
        await reader.rest()
    assert held_connections() <= before
    for reader in readers:
        await reader.leave()


def held_connections() -> int:
    stats = connection.pool.get_stats()  # type: ignore[attr-defined]
    return int(stats["pool_size"] - stats["pool_available"])


async def test_a_client_that_left_before_the_answer_frees_everything(session: str) -> None:
    reader = Reader(one_page_at_once(), "/api/audit?format=csv", session)
    await reader.leave()
    gc.collect()
    assert not exports.taken
    assert reader.messages == []


def peak_bytes(api: Api, limit: int) -> tuple[int, int]:
    """The most memory that sending an export took, and the size of the export."""
    answer: Any = api.send("owner", "GET", f"/audit?format=csv&limit={limit}")

    async def sent_bytes() -> int:
        return sum([len(part) async for part in answer])

    gc.collect()
    tracemalloc.start()
    try:
        sent = async_to_sync(sent_bytes)()
        return tracemalloc.get_traced_memory()[1], sent
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_export(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "EXPORT_PAGE_ROWS", 100)
    add_calls(api.cast.org.id, 6_000, user_label="A name of some length, so that rows are long" * 3)
    peak_bytes(api, 100)  # fills caches that stay
    small, _ = peak_bytes(api, 600)
    large, sent = peak_bytes(api, 6_000)
    assert sent > 1_000_000
    assert large < small + sent / 20
