"""One contract for every exchange: the file of one host, and Redis where the run has one."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from gateway.coordination.exchange import MAX_TAKEN, Exchange, Fields, Table
from gateway.coordination.redis_exchange import RedisExchange
from gateway.coordination.sqlite_exchange import _TAKEN, SQLiteExchange
from gateway.coordination.store import CoordinationUnavailable
from proxy.calls.subscribe_item import MAX_KEPT_BYTES


def new_exchange(kind: str, folder: Path, prefix: str) -> Exchange:
    return RedisExchange(settings.REDIS_URL, prefix) if kind == "redis" else SQLiteExchange(folder / "x.sqlite3")


@pytest.fixture(params=["file", *(["redis"] if settings.REDIS_URL else [])])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Exchange, Exchange]]:
    """Two processes."""
    prefix = f"contract-{uuid.uuid4().hex}:"
    made = [new_exchange(request.param, tmp_path, prefix) for _ in range(2)]
    yield made[0], made[1]
    for each in made:
        each.close()


async def test_values(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    assert await here.get("a") is None
    await here.put("a", b"\x00\xff", 60)
    await there.put("b", b"", 60)
    assert (await there.get("a"), await here.get("b"), await here.get("c")) == (b"\x00\xff", b"", None)
    await there.put("a", b"2", 60)
    assert await here.get("a") == b"2"


async def test_a_claim_is_of_the_first(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    assert await here.claim("a", 60)
    assert [await there.claim("a", 60), await here.claim("a", 60), await there.claim("b", 60)] == [False, False, True]


async def test_a_message_is_taken_once_and_in_order(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    for number in range(MAX_TAKEN + 5):
        await here.push("box", b"%d" % number, 60)
    await here.push("another", b"x", 60)
    taken = [*await there.take("box", 0.1), *await here.take("box", 0.1)]
    assert taken == [b"%d" % number for number in range(MAX_TAKEN + 5)]
    assert await there.take("box", 0.05) == []


async def test_who_waits_gets_what_comes(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    waiting = asyncio.ensure_future(there.take("box", 5))
    await asyncio.sleep(0.1)
    assert await here.get("nothing") is None, "another is not held up"
    began_s = time.monotonic()
    await here.push("box", b"1", 60)
    assert await waiting == [b"1"]
    assert time.monotonic() - began_s < 2


T = Table("t", 2)


async def test_a_table_has_so_many_fields_and_no_more(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    assert await here.set_field(T, b"1", b"a", ttl_s=60) == ""
    assert await there.set_field(T, b"2", b"b", ttl_s=60) == ""
    assert await here.set_field(T, b"3", b"c", ttl_s=60) == "t"
    assert await here.set_field(T, b"2", b"new", ttl_s=60) == "", "it has its place"
    assert (await there.fields(T, ttl_s=60)).values == {b"1": b"a", b"2": b"new"}
    await there.remove_field(T, b"1")
    await there.remove_field(T, b"no such")
    assert await here.set_field(T, b"3", b"c", ttl_s=60) == ""
    assert (await here.fields(T, ttl_s=60)).values.keys() == {b"2", b"3"}
    assert await here.fields(Table("another", 2), ttl_s=60) == Fields()


async def test_tables_share_places(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    tables = [Table(f"{{o}}:{name}", 2, (("{o}:a:", 3), ("{o}:", 4))) for name in ("a:1", "a:2", "b:1")]
    mine, more, other = tables[0], tables[1], replace(tables[2], shares=(("{o}:b:", 3), ("{o}:", 4)))
    for number, (table, expected) in enumerate(
        [(mine, ""), (mine, ""), (mine, "{o}:a:1"), (more, ""), (more, "{o}:a:"), (other, ""), (other, "{o}:")]
    ):
        assert await pair[number % 2].set_field(table, b"%d" % number, b"x", ttl_s=60) == expected
    assert await there.set_field(mine, b"0", b"new", ttl_s=60) == "", "it has its place"
    assert (await here.fields(mine, ttl_s=60)).values == {b"0": b"new", b"1": b"x"}
    await here.remove_field(mine, b"0")
    assert await there.set_field(other, b"6", b"x", ttl_s=60) == "", "a place that became free"
    assert await there.set_field(more, b"7", b"x", ttl_s=60) == "{o}:"
    await there.drop(other)
    assert await there.fields(other, ttl_s=60) == Fields()
    assert await here.set_field(more, b"7", b"x", ttl_s=60) == "", "of a table that has ended"
    foreign = Table("{p}:a:1", 2, (("{p}:", 1),))
    assert await here.set_field(foreign, b"1", b"x", ttl_s=60) == "", "others have places of their own"


async def test_places_end_with_their_table(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    short, long = (Table(f"{{o}}:{name}", 1, (("{o}:", 1),)) for name in "ab")
    assert await here.set_field(short, b"1", b"x", ttl_s=1) == ""
    assert await there.set_field(long, b"1", b"x", ttl_s=60) == "{o}:"
    assert await there.set_field(short, b"2", b"x", ttl_s=60) == short.name, "a refused field keeps it no longer"
    async with asyncio.timeout(5):
        while await there.set_field(long, b"1", b"x", ttl_s=60):
            await asyncio.sleep(0.1)
    assert await here.fields(short, ttl_s=60) == Fields()


async def test_a_lost_table_has_another_mark_and_an_emptied_one_has_not(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    await here.set_field(T, b"1", b"a", ttl_s=60)
    mark = (await there.fields(T, ttl_s=60)).mark
    assert mark
    await there.remove_field(T, b"1")
    assert await here.fields(T, ttl_s=60) == Fields(mark)
    await here.set_field(T, b"2", b"b", ttl_s=60)
    assert await here.fields(T, ttl_s=60) == Fields(mark, {b"2": b"b"})
    await here.drop(T)
    assert await there.fields(T, ttl_s=60) == Fields()
    await there.set_field(T, b"2", b"b", ttl_s=60)
    assert (await here.fields(T, ttl_s=60)).mark not in (b"", mark)


async def test_the_largest_table_of_a_session_is_one_reply(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    value = b"x" * (2 * MAX_KEPT_BYTES + 256)  # the caller's address and the vendor's, sealed
    largest = Table("t", settings.SUBSCRIPTIONS_OF_SESSION)
    for number in range(settings.SUBSCRIPTIONS_OF_SESSION):
        assert await here.set_field(largest, b"%16d" % number, value, ttl_s=60) == ""
    assert len((await there.fields(largest, ttl_s=60)).values) == settings.SUBSCRIPTIONS_OF_SESSION


async def test_of_two_at_once_one_gets_the_last_place(pair: tuple[Exchange, Exchange]) -> None:
    one = Table("t", 1)
    found = await asyncio.gather(*(pair[n].set_field(one, b"%d" % n, b"a", ttl_s=60) for n in (0, 1)))
    assert sorted(found) == ["", "t"]
    shared = [Table(f"{{o}}:{n}", 9, (("{o}:", 5),)) for n in range(20)]
    both = await asyncio.gather(*(pair[n % 2].set_field(shared[n], b"1", b"a", ttl_s=60) for n in range(20)))
    assert sorted(both) == [*[""] * 5, *["{o}:"] * 15]
    assert len((await pair[1].fields(one, ttl_s=60)).values) == 1


async def test_a_log_is_read_by_all(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    await here.append("log", b"before", 60)
    place = await there.end_of("log")
    assert await there.read_after("log", place, 0.01) == (place, [])
    for number in range(MAX_TAKEN + 5):
        await here.append("log", b"%d" % number, 60)
    await here.append("another", b"x", 60)
    for reader in pair:
        middle, first = await reader.read_after("log", place, 0.1)
        end, rest = await reader.read_after("log", middle, 0.1)
        assert [*first, *rest] == [b"%d" % number for number in range(MAX_TAKEN + 5)]
        assert end == await reader.end_of("log")
    assert await here.read_after("new", await here.end_of("new"), 0.01) == (await here.end_of("new"), [])


async def test_who_follows_a_log_gets_what_comes(pair: tuple[Exchange, Exchange]) -> None:
    here, there = pair
    waiting = asyncio.ensure_future(there.read_after("log", await there.end_of("log"), 5))
    taking = asyncio.ensure_future(there.take("box", 5))
    await asyncio.sleep(0.1)
    await here.append("log", b"1", 60)
    assert (await asyncio.wait_for(waiting, 2))[1] == [b"1"]
    taking.cancel()


async def test_a_file_forgets_fields_and_entries_and_no_place(tmp_path: Path) -> None:
    now_ms = [0]
    made = SQLiteExchange(tmp_path / "x.sqlite3", lambda: now_ms[0])
    one = Table("t", 1)
    assert await made.set_field(one, b"1", b"a", ttl_s=1) == ""
    await made.append("log", b"1", 1)
    place = await made.end_of("log")
    now_ms[0] = 1_001
    assert await made.fields(one, ttl_s=1) == Fields()
    assert await made.set_field(one, b"2", b"b", ttl_s=1) == "", "the first has made room"
    for number in range(200):
        await made.put(f"n{number}", b"", 1)
    await made.append("log", b"2", 1)
    assert (await made.read_after("log", place, 0.01))[1] == [b"2"]
    made.close()


async def test_a_file_counts_fields_without_reading_their_values(tmp_path: Path) -> None:
    """Values are some KiB each, and the event loop waits meanwhile."""
    made = SQLiteExchange(tmp_path / "x.sqlite3")
    steps = made._execute(f"EXPLAIN QUERY PLAN SELECT {_TAKEN}", "a", "b", 0)
    assert "USING COVERING INDEX field_end" in str(steps)
    made.close()


async def test_a_file_forgets_what_is_too_old(tmp_path: Path) -> None:
    now_ms = [0]
    made = SQLiteExchange(tmp_path / "x.sqlite3", lambda: now_ms[0])
    await made.put("a", b"1", 1)
    await made.push("box", b"1", 1)
    assert await made.claim("c", 1)
    now_ms[0] = 1_001
    assert await made.claim("c", 1)
    assert not await made.claim("c", 1)
    assert await made.get("a") is None
    assert await made.take("box", 0.01) == []
    made.close()


async def test_an_exchange_that_is_away_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite3").write_bytes(b"no database" * 100)
    with pytest.raises(CoordinationUnavailable):
        await SQLiteExchange(tmp_path / "x.sqlite3").get("a")
    with pytest.raises(CoordinationUnavailable):
        await RedisExchange("redis://127.0.0.1:9/0", "x:").get("a")
