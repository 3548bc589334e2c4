"""The report of hand-written parts: ratios to the own part, and a peer that answers."""

from __future__ import annotations

import asyncio

import pytest

from bench import part_peers, parts


def test_each_contender_has_its_ratio_to_the_own_part() -> None:
    lines = parts.table("clients", {"own": 20.0, "other": 50.0})
    assert [line.split() for line in lines] == [
        ["clients"],
        ["own", "20.0", "1.00", "x"],
        ["other", "50.0", "2.50", "x"],
    ]


def test_a_part_without_its_back_end_is_named() -> None:
    assert parts.table("Redis", {}) == ["Redis: left out, BENCH_REDIS_URL is not set"]


async def test_cpu_time_is_that_of_one_operation() -> None:
    done = 0

    async def work() -> None:
        nonlocal done
        done += 1
        sum(range(20_000))
        await asyncio.sleep(0)

    assert 10 < await parts.cpu_us(work, 0.05, concurrent=2) < 100_000
    assert done > 2


async def test_the_load_counts_what_was_answered() -> None:
    server = await asyncio.get_running_loop().create_server(part_peers.Responder, "127.0.0.1", 0)
    async with server:
        assert await part_peers.load(server.sockets[0].getsockname()[1], 0.5) >= part_peers.CONNECTIONS


@pytest.mark.parametrize("is_fast", [True, False])
async def test_both_ways_of_the_server_are_measured(is_fast: bool) -> None:
    assert await parts._served_us(0.1, is_fast=is_fast) > 0
