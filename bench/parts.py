"""Hand-written parts beside the libraries that they replace, in CPU time of this process.

    python -m bench.parts [SECONDS]

Every line runs for SECONDS (default 2). CPU time is per operation, so that a busy machine changes it little; the group
commit is measured in rows a second, because it saves waiting. BENCH_REDIS_URL names a Redis for the pipelined line.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import redis.asyncio
import uvicorn
import uvloop

from audit.call_record import CallRecord
from audit.writer import AuditWriter
from bench import part_app  # configures Django
from bench.part_peers import ANSWER, BODY
from gateway.coordination import resp
from gateway.coordination.pipelined_redis import PipelinedRedis
from gateway.uvicorn_fast_path import EXTENSION
from proxy.vendors.http1 import Limits
from proxy.vendors.transport import VendorTransport

CONCURRENT = 16
WAITING_CALLS = 64
LIMITS = Limits(connect_s=5.0, chunk_s=10.0, body_bytes=10 * 1024 * 1024)
HEADERS = {"Content-Type": "application/json"}
Operation = Callable[[], Awaitable[object]]


async def cpu_us(operation: Operation, seconds: float, concurrent: int = CONCURRENT) -> float:
    """Microseconds of CPU of this process, its threads included, for one operation."""
    return (await _run(operation, seconds, concurrent))[1]


async def _run(operation: Operation, seconds: float, concurrent: int) -> tuple[float, float]:
    """(operations a second, CPU microseconds of one)."""
    await asyncio.gather(*[operation() for _ in range(concurrent)])
    done, began_s, began_cpu_s = 0, time.perf_counter(), time.process_time()

    async def repeat() -> None:
        nonlocal done
        while time.perf_counter() - began_s < seconds:
            await operation()
            done += 1

    await asyncio.gather(*[repeat() for _ in range(concurrent)])
    spent_cpu_s, spent_s = time.process_time() - began_cpu_s, time.perf_counter() - began_s
    return done / spent_s, spent_cpu_s / done * 1e6


# --- HTTP client to vendors -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def http_server() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.part_peers", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield f"http://127.0.0.1:{child.stdout.readline().strip()}/"
        finally:
            child.terminate()


async def http_clients(seconds: float) -> dict[str, float]:
    with http_server() as url:
        transport = VendorTransport(allow_private=True, limits=LIMITS, connections_per_origin=100)
        prepared, loop = transport.prepare(url, HEADERS), asyncio.get_running_loop()

        async def own() -> None:
            async with transport.send("POST", prepared, BODY, deadline=loop.time() + 30) as response:
                assert await response.body() == ANSWER

        found = {"own": await cpu_us(own, seconds)}
        await transport.aclose()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

            async def with_aiohttp() -> None:
                async with session.post(url, data=BODY, headers=HEADERS) as response:
                    assert await response.read() == ANSWER

            found["aiohttp"] = await cpu_us(with_aiohttp, seconds)
        async with httpx.AsyncClient(trust_env=False) as client:

            async def with_httpx() -> None:
                assert (await client.post(url, content=BODY, headers=HEADERS)).content == ANSWER

            found["httpx"] = await cpu_us(with_httpx, seconds)
    return found


# --- hot path app -----------------------------------------------------------------------------------------------------


async def handlers(seconds: float) -> dict[str, float]:
    own, stock = part_app.hot_path(), part_app.stock()
    return {
        "own": await cpu_us(lambda: part_app.ask(own), seconds),
        "Django, no middleware": await cpu_us(lambda: part_app.ask(stock), seconds),
    }


# --- past ASGI's messages ---------------------------------------------------------------------------------------------


def _app(*, is_fast: bool) -> Callable[..., Awaitable[None]]:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        fast_path = scope["extensions"][EXTENSION]
        if is_fast and fast_path.take_body() is not None and fast_path.send_response(200, headers, ANSWER):
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": ANSWER})

    return app


@contextlib.asynccontextmanager
async def _served(app: Any) -> AsyncIterator[int]:
    protocol = "gateway.http_protocol:BoundedHttpProtocol"
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=protocol, lifespan="off", log_config=None))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def _served_us(seconds: float, *, is_fast: bool) -> float:
    async with _served(_app(is_fast=is_fast)) as port:
        command = [sys.executable, "-m", "bench.part_peers", "load", str(port), str(seconds)]
        child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        began_cpu_s = time.process_time()
        answered, _ = await child.communicate()
        return (time.process_time() - began_cpu_s) / int(answered) * 1e6


async def fast_path(seconds: float) -> dict[str, float]:
    return {
        "own": await _served_us(seconds, is_fast=True),
        "uvicorn's ASGI messages": await _served_us(seconds, is_fast=False),
    }


# --- Redis ------------------------------------------------------------------------------------------------------------


async def redis_clients(seconds: float) -> dict[str, float]:
    url = os.environ.get("BENCH_REDIS_URL", "")
    if not url:
        return {}
    own, key = PipelinedRedis(url, timeout_s=5), f"bench-parts:{uuid.uuid4()}"
    command = resp.command("INCR", key)
    stock = redis.asyncio.Redis.from_url(url)
    try:
        return {
            "own": await cpu_us(lambda: own.execute(command), seconds),
            "redis.asyncio": await cpu_us(lambda: stock.incr(key), seconds),
        }
    finally:
        await stock.delete(key)
        await stock.aclose()
        own.close()


def encoded_by_hand(*parts: str | int) -> bytes:
    """A command without hiredis."""
    encoded = [str(part).encode() for part in parts]
    return b"*%d\r\n%b" % (len(encoded), b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in encoded))


async def redis_commands(seconds: float) -> dict[str, float]:
    names = [f"gateway:{kind}:{uuid.uuid4()}" for kind in ("rate:tools", "epoch:subject", "epoch:org", "epoch:catalog")]
    parts: tuple[str | int, ...] = ("EVALSHA", uuid.uuid4().hex, len(names), *names, 1_000, 3_600_000, 1)
    assert resp.command(*parts) == encoded_by_hand(*parts)

    async def by_hand() -> None:
        encoded_by_hand(*parts)

    async def in_use() -> None:
        resp.command(*parts)

    return {"own": await cpu_us(by_hand, seconds), "hiredis (in use)": await cpu_us(in_use, seconds)}


# --- group commit -----------------------------------------------------------------------------------------------------


class FileConnection:
    """A table in a SQLite file, durable at each commit."""

    gather_s = 0.0

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row (id TEXT)")

    def commit(self, records: Sequence[CallRecord]) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._database.executemany("INSERT INTO row VALUES (?)", [(str(record.id),) for record in records])
        self._database.execute("COMMIT")

    def probe(self) -> None: ...

    def for_loop(self) -> None:
        return None

    def close(self) -> None:
        self._database.close()


async def _rows_per_s(seconds: float, **options: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        writer = AuditWriter(open_connection=lambda: FileConnection(Path(folder) / "rows.sqlite3"), **options)
        organization = uuid.uuid4()

        async def write() -> None:
            await writer.write(
                CallRecord(org_id=organization, user_id="x", user_label="x", source="mcp", request_id="x")
            )

        rows, _ = await _run(write, seconds, WAITING_CALLS)
        await writer.aclose()
    return rows


async def commits(seconds: float) -> dict[str, float]:
    return {
        "own": await _rows_per_s(seconds),
        "one commit each": await _rows_per_s(seconds, max_batch=1),
    }


PARTS = {
    "HTTP client to vendors, us of CPU": http_clients,
    "request handler, us of CPU": handlers,
    "answer past ASGI's messages, us of CPU": fast_path,
    "Redis commands, us of CPU": redis_clients,
    "admission encoded for Redis, us of CPU": redis_commands,
    "audit rows a second, 64 calls waiting": commits,
}


def table(part: str, found: dict[str, float]) -> list[str]:
    """One line for each contender, with its ratio to the hand-written part."""
    if not found:
        return [f"{part}: left out, BENCH_REDIS_URL is not set"]
    own = found["own"]
    return [part, *[f"  {name:<26}{value:>10.1f}{value / own:>8.2f} x" for name, value in found.items()]]


async def main(seconds: float) -> None:
    for part, measure in PARTS.items():
        sys.stdout.write("\n".join(table(part, await measure(seconds))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0))
