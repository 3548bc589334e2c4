"""The fault matrix: a vendor misbehaves in each known way, and both routes answer in the documented words, in time,
within bounds, with a row. Only faults of the way to the vendor open a circuit. The next call works.

Spec: §4.14, §4.15, §7 · D100, D105 · docs/decisions/0023
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings

from gateway.catalog import registry as catalog
from gateway.hot_path_request import HotPathRequest
from proxy.control_plane.health.probe import probe
from proxy.control_plane.health.states import FAILURES_UNTIL_DOWN, UNKNOWN, HealthStatus, after_probe
from proxy.request_context import RequestContext
from proxy.vendors.http1 import Limits
from proxy.vendors.response import VendorResponse
from tests.api.proxy.conftest import Agent
from tests.api.proxy.hostile.answers import (
    BAD,
    PATIENCE_S,
    REJECTED,
    TIMEOUT,
    UNAVAILABLE,
    Row,
    assert_refused,
    both,
    nothing_is_held,
    rows,
    troubled_circuits,
    warm,
)
from tests.factories.tenant import Tenant, load_vendor
from tests.factories.threads import in_thread
from tests.factories.vendor_pools import LIMITS, new_transport
from tests.fakes.deaf_port import deaf_port
from tests.fakes.hostile_vendor import HostileVendor
from tests.fakes.vendor_faults import FAULTS, MIB
from tests.garbage import freed_soon_without_collection

TIMEOUT_S = 1  # of the vendor, where it is to be met
ANSWERED = HealthStatus.HEALTHY
ROWS = {
    "closes_at_once": Row(UNAVAILABLE, "credential"),
    "resets": Row(UNAVAILABLE, "credential"),
    "never_answers": Row(TIMEOUT, "credential"),
    "half_a_head": Row(TIMEOUT, "credential"),
    "half_a_body": Row(TIMEOUT),
    "dies_in_the_body": Row(BAD),
    "drips": Row(TIMEOUT),
    "only_comments": Row(TIMEOUT),
    "a_stream_that_says_nothing": Row(TIMEOUT),
    "a_stream_that_ends": Row(BAD, probe=ANSWERED),
    "interim_answers_for_ever": Row(BAD),
    "no_http": Row(BAD),
    "html": Row(BAD, probe=ANSWERED),
    "a_picture": Row(BAD, probe=ANSWERED),
    "broken_json": Row(BAD, probe=ANSWERED),
    "nothing_at_all": Row(BAD, probe=ANSWERED),
    "no_content": Row(BAD, probe=ANSWERED),
    "another_json_rpc": Row(BAD, probe=ANSWERED),
    "a_wrong_id": Row(BAD, probe=ANSWERED),
    "an_id_of_another_type": Row(BAD, probe=ANSWERED),
    "an_error_for_nobody": Row(BAD, probe=ANSWERED),
    "a_result_that_is_a_list": Row(BAD, probe=ANSWERED),
    "neither_result_nor_error": Row(BAD, probe=ANSWERED),
    "a_batch": Row(BAD, probe=ANSWERED),
    "no_utf_8": Row(BAD, probe=ANSWERED),
    "deep_json": Row(BAD, probe=ANSWERED),
    "two_lengths": Row(BAD),
    "another_coding": Row(BAD),
    "half_a_gzip": Row(BAD),
    "a_huge_length": Row(BAD),
    "an_endless_body": Row(BAD),
    "a_gzip_bomb": Row(BAD),
    "an_endless_event": Row(BAD),
    "a_flood_of_events": Row(BAD),
    "a_flood_of_empty_lines": Row(BAD),
    "tiny_chunks": Row(BAD),
    "endless_headers": Row(BAD),
    "says_401": Row(REJECTED, probe=HealthStatus.REACHABLE),
    "says_403": Row(REJECTED, probe=HealthStatus.REACHABLE),
    "says_429": Row(UNAVAILABLE, probe=ANSWERED, retry_after_s=7),
    "says_429_in_other_digits": Row(UNAVAILABLE, probe=ANSWERED),
    "says_429_for_ever": Row(UNAVAILABLE, probe=ANSWERED),
    "says_429_until_a_date": Row(UNAVAILABLE, probe=ANSWERED, retry_after_s=0),
    "says_500": Row(UNAVAILABLE),
    "says_503": Row(UNAVAILABLE),
    "says_418": Row(BAD, probe=ANSWERED),
    "redirects": Row(BAD, probe=ANSWERED),
    "says_101": Row(BAD),
    "says_600": Row(BAD),
}
ODD_BUT_GOOD = ("answers_twice", "answers_others_first", "asks_first", "plain_text")
LARGE = (
    "interim_answers_for_ever",
    "a_huge_length",
    "an_endless_body",
    "a_gzip_bomb",
    "an_endless_event",
    "a_flood_of_events",
    "a_flood_of_empty_lines",
    "tiny_chunks",
    "endless_headers",
)


def test_every_fault_has_its_row() -> None:
    assert {*ROWS, *ODD_BUT_GOOD} == set(FAULTS)


@pytest.mark.parametrize("name", ROWS)
async def test_both_routes_say_what_is_wrong(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, name: str
) -> None:
    row = ROWS[name]
    if row.reason == TIMEOUT:
        await in_thread(lambda: load_vendor(hostile.url, timeout_s=TIMEOUT_S))
    await warm(agent, tenant, jwt)
    hostile.fault = name
    async with freed_soon_without_collection(HotPathRequest, RequestContext, VendorResponse):
        assert_refused(*await both(agent, tenant, jwt), row)
        await nothing_is_held()
    assert [(each.source, each.status, each.error_code, each.vendor) for each in await rows()] == [
        ("cli", "error", row.reason, "fake"),
        ("mcp", "error", row.reason, "fake"),
    ]
    assert hostile.seen["tools/call"] == 4, "nothing is sent twice"
    assert troubled_circuits() == ({row.circuit} if row.circuit else set())
    hostile.fault = ""
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200
        assert "fine" in answer.text
    assert troubled_circuits() == set()


@pytest.mark.parametrize("name", ODD_BUT_GOOD)
async def test_what_is_odd_is_no_fault(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, name: str
) -> None:
    await warm(agent, tenant, jwt)
    hostile.fault = name
    mcp = await agent.call(tenant.agent_key, "fake_write")
    hostile.refusals.clear()
    cli = await agent.cli(jwt, "write")
    for result in (mcp.json()["result"], cli.json()["result"]):
        fine, *note = result["content"]
        assert fine == {"type": "text", "text": "fine"}
        assert bool(note) is (name == "asks_first")  # it says what was asked
        assert all("sampling/createMessage" in each["text"] for each in note)
    assert [each.status for each in await rows()] == ["success"] * 2
    if name == "asks_first":
        replies_by_id = {each["id"]: each.get("error", {}).get("code", each.get("result")) for each in hostile.refusals}
        refused = dict.fromkeys(("qroots/list", "qsampling/createMessage", "qelicitation/create"), -32601)
        assert replies_by_id == {**refused, "qping": {}}


@contextmanager
def at_most(more_bytes: int) -> Iterator[None]:
    """The block allocates at most so many bytes at once, beyond those there before."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < more_bytes


@pytest.mark.parametrize("name", LARGE)
async def test_memory_is_bounded(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, settings: LazySettings, name: str
) -> None:
    # Three times what a reply may take; tracing makes each MiB of small events a second long.
    settings.VENDOR_REPLY_BYTES = 2 * MIB
    await warm(agent, tenant, jwt)
    hostile.fault = name
    with at_most(7 * MIB):
        mcp = await agent.call(tenant.agent_key, "fake_write")
    with at_most(7 * MIB):
        cli = await agent.cli(jwt, "write")
    assert_refused(mcp, cli, ROWS[name])


# --- the way to it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "row"), [("refused", Row(UNAVAILABLE)), ("deaf", Row(TIMEOUT))])
async def test_no_connection(
    agent: Agent, tenant: Tenant, jwt: str, hostile: HostileVendor, settings: LazySettings, way: str, row: Row
) -> None:
    settings.VENDOR_CONNECT_TIMEOUT_S = 1.0
    with deaf_port() as port:
        url = f"http://127.0.0.1:{port if way == 'deaf' else 9}/mcp"
        await in_thread(lambda: load_vendor(url, timeout_s=30))
        assert_refused(*await both(agent, tenant, jwt), row)
        assert {(each.error_code, each.vendor) for each in await rows()} == {(row.reason, "fake")}
        assert troubled_circuits() == {"vendor"}
        transport = new_transport(limits=replace(LIMITS, connect_s=0.2))
        vendor = (await in_thread(catalog.load)).get("fake")
        assert vendor is not None
        health = UNKNOWN
        for expected in (HealthStatus.DEGRADED, HealthStatus.DEGRADED, HealthStatus.DOWN):
            health = after_probe(health, await probe(transport, vendor, deadline_s=0.3), latency_threshold_ms=2_000)
            assert health.status is expected
        await transport.aclose()
    await in_thread(lambda: load_vendor(hostile.url, timeout_s=120))
    for answer in await both(agent, tenant, jwt):
        assert answer.status_code == 200


# --- what the monitor makes of it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
async def test_the_monitor_sees_the_same_vendor(hostile: HostileVendor, name: str) -> None:
    """A vendor that answers anything over HTTP is there; no answer degrades, and the third in a row means down."""
    hostile.fault, hostile.strikes = name, ("initialize",)
    transport = new_transport(limits=Limits(connect_s=5.0, chunk_s=0.15, body_bytes=MIB))
    deadline_s = 1.0 if ROWS[name].reason == TIMEOUT else 30
    state, seen = UNKNOWN, []
    for _ in range(FAILURES_UNTIL_DOWN):
        async with asyncio.timeout(PATIENCE_S):
            result = await probe(transport, _vendor(hostile.url), deadline_s=deadline_s)
        state = after_probe(state, result, latency_threshold_ms=60_000)
        seen.append(state.status)
        assert "127.0.0.1" not in (state.error_detail or "")
        assert "secret" not in (state.error_detail or "")
    await transport.aclose()
    is_there = ROWS[name].probe is not HealthStatus.DEGRADED
    assert seen == [ROWS[name].probe] * 2 + [ROWS[name].probe if is_there else HealthStatus.DOWN]
    assert hostile.seen["initialize"] == FAILURES_UNTIL_DOWN, "one request a probe"


def _vendor(url: str) -> Any:
    """As much of a vendor as a probe needs."""

    class Probed:
        slug = "fake"

    Probed.url = url  # type: ignore[attr-defined]
    return Probed
