"""Vendors of both revisions behind one pool: asked once, spoken to as they are, and never called twice.

docs/decisions/0106
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from asyncio import StreamWriter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.coordination.sqlite_store import SQLiteStore
from proxy.outcomes import VendorFault
from proxy.progress_relay import ProgressRelay
from proxy.protocol import replies
from proxy.protocol.progress import Wanted
from proxy.vendors import opening
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.era_verdicts import DAY_S, EraVerdicts
from proxy.vendors.errors import Evidence, VendorProblem
from proxy.vendors.pool import SessionPool
from proxy.vendors.rpc_request import RpcRequest
from proxy.vendors.send import send_request
from proxy.vendors.tool_request import ToolRequest
from proxy.vendors.transport import VendorTransport
from tests.factories.vendor_pools import new_pool, new_transport
from tests.fakes.era_vendor import META, OURS, UNSUPPORTED_MODERN, EraVendor, answer, era_vendor, refuse, says

ORGS = (uuid.UUID(int=1), uuid.UUID(int=2))
LATER = ["2027-01-01"]


class Clock:
    now_s = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Way:
    """The gateway's way to a vendor."""

    vendor: EraVendor
    pool: SessionPool
    clock: Clock
    verdicts: EraVerdicts

    def destination(self, org: uuid.UUID = ORGS[0]) -> Destination:
        key = PoolKey.of(org, "acme", org, self.vendor.url, {})
        return Destination(key, lambda: (self.vendor.url, {}), fixed_address=True, timeout_s=10.0)

    async def send(self, method: str = "tools/call", *, org: uuid.UUID = ORGS[0], **more: Any) -> Any:
        params = {"name": "write", "arguments": {}} if method == "tools/call" else {}
        deadline = asyncio.get_running_loop().time() + 10
        is_repeatable = more.pop("is_repeatable", False)
        request = RpcRequest(method, more.pop("params", params), deadline, is_repeatable=is_repeatable, **more)
        return await send_request(self.pool, self.destination(org), request)

    async def runs(self, *, org: uuid.UUID = ORGS[0]) -> None:
        """A call is answered with the tool's result, in the form of the earlier revisions."""
        found = await self.send(org=org)
        assert isinstance(found, replies.VendorResult), found
        assert json.loads(found.raw_result) == {"content": [{"type": "text", "text": "ran"}]}

    async def fails(self) -> VendorFault:
        with pytest.raises(VendorProblem) as problem:
            await self.send()
        return problem.value.fault


@pytest.fixture
async def transport() -> AsyncIterator[VendorTransport]:
    made = new_transport()
    yield made
    await made.aclose()


@pytest.fixture
async def way(transport: VendorTransport) -> AsyncIterator[Way]:
    clock = Clock()
    verdicts = EraVerdicts(None, b"secret", max_verdicts=100, now_s=clock)
    pool = new_pool(transport, verdicts=verdicts)
    async with era_vendor() as vendor:
        yield Way(vendor, pool, clock, verdicts)
        await pool.aclose()


async def test_a_modern_vendor_is_asked_once_and_begins_with_the_call(way: Way) -> None:
    for _ in range(2):
        await way.runs()
    await way.send("tools/list")
    assert way.vendor.seen == {"server/discover": 1, "tools/call": 2, "tools/list": 1}
    assert way.vendor.headers["mcp-protocol-version"] == OURS
    assert (way.vendor.headers["mcp-method"], way.vendor.headers["mcp-name"]) == ("tools/call", "write")
    assert "mcp-session-id" not in way.vendor.headers
    meta = way.vendor.params["_meta"]
    assert set(meta) == {f"{META}protocolVersion", f"{META}clientCapabilities", f"{META}clientInfo"}
    assert meta[f"{META}clientCapabilities"] == {}
    await way.runs(org=ORGS[1])
    assert way.vendor.seen["server/discover"] == 2, "another organization's verdict is not believed"


async def test_processes_share_what_a_vendor_said(transport: VendorTransport, tmp_path: Path) -> None:
    """Each learns of a change by its own refusal; the vendor is asked once for both."""
    store = SQLiteStore(tmp_path / "coordination.sqlite3", lambda: uuid.uuid4().hex)
    async with era_vendor() as vendor:
        processes: list[Way] = []
        for _ in range(2):
            clock = Clock()
            verdicts = EraVerdicts(store, b"secret", max_verdicts=100, now_s=clock)
            processes.append(Way(vendor, new_pool(transport, verdicts=verdicts), clock, verdicts))
        for era in ("modern", "earlier", "modern"):
            vendor.era, vendor.ran = era, 0
            vendor.seen.clear()
            for process in processes:
                process.clock.now_s += 60
                await process.runs()
            assert (vendor.ran, vendor.seen["server/discover"]) == (2, 1)
        for process in processes:
            await process.pool.aclose()
    await store.aclose()


async def test_marked_arguments_are_repeated_in_headers(way: Way) -> None:
    schema = {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}}
    definition = json.dumps({"name": "write", "inputSchema": schema}).encode()
    params = {"name": "write", "arguments": {"place": "Süd\r\nX-Evil: 1"}}
    await way.send(params=params, tool=ToolRequest(definition))
    assert way.vendor.headers["mcp-param-place"] == "=?base64?U8O8ZA0KWC1FdmlsOiAx?="
    assert "x-evil" not in way.vendor.headers


async def test_other_headers_than_the_vendor_wants_renew_the_list(way: Way) -> None:
    """The call is not repeated: the gateway has no other definition yet."""
    changed: list[PoolKey] = []
    way.pool.on_tools_changed = changed.append

    async def wants_another(writer: StreamWriter, asked: dict[str, Any]) -> None:
        refuse(writer, {"code": -32020, "message": "Mcp-Param-Place is missing"}, message_id=asked["id"])

    way.vendor.answers["tools/call"] = wants_another
    found = await way.send()
    assert isinstance(found, replies.RpcError)
    assert found.code == -32020
    assert changed == [way.destination().key]
    assert way.vendor.seen == {"server/discover": 1, "tools/call": 1}


async def test_a_session_that_asked_nothing_closes_no_circuit(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Evidence] = []
    monkeypatch.setattr(way.pool.circuits, "record", lambda _, evidence: recorded.append(evidence))
    await way.verdicts.keep(way.destination().key, OURS)
    await way.pool.lease(way.destination(), deadline=1e9)
    assert (recorded, way.vendor.seen) == ([], {})
    await way.pool.lease(way.destination(ORGS[1]), deadline=1e9)
    assert (recorded, way.vendor.seen) == ([Evidence.RESPONDED], {"server/discover": 1})


async def test_marked_arguments_that_are_too_long_for_a_head_are_not_sent(way: Way) -> None:
    schema = {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}}
    tool = ToolRequest(json.dumps({"name": "write", "inputSchema": schema}).encode())
    found = await way.send(params={"name": "write", "arguments": {"place": "x" * 20_000}}, tool=tool)
    assert isinstance(found, replies.RpcError)
    assert (found.code, json.loads(found.raw_error)["code"]) == (-32602, -32602)
    assert way.vendor.seen["tools/call"] == 0
    await way.runs()


async def test_an_earlier_vendor_gets_the_same_bytes_as_ever(way: Way, transport: VendorTransport) -> None:
    way.vendor.era = "earlier"
    await way.runs()
    await way.send("tools/list")
    asked, *sent = way.vendor.raw.requests
    assert b'"method":"server/discover"' in asked
    way.vendor.raw.requests.clear()
    plain = new_pool(transport)
    for method in ("tools/call", "tools/list"):
        await Way(way.vendor, plain, way.clock, way.verdicts).send(method)
    await plain.aclose()
    assert sent == way.vendor.raw.requests[: len(sent)]
    assert way.vendor.ran == 2


@pytest.mark.parametrize("has_sessions", [True, False])
async def test_a_vendor_that_changes_over_costs_one_question_and_no_call(way: Way, has_sessions: bool) -> None:
    """Callers come at once, before and after each change; each is answered, and the tool has run once for each."""
    way.vendor.has_sessions = has_sessions
    for era in ("modern", "earlier", "modern", "earlier"):
        way.vendor.era, way.vendor.ran = era, 0
        way.vendor.seen.clear()
        await asyncio.gather(*(way.runs() for _ in range(12)))
        await way.runs()
        assert way.vendor.ran == 13
        assert way.vendor.seen["server/discover"] == 1
        assert way.vendor.seen["initialize"] == (era == "earlier")


async def test_a_refusal_that_is_not_certain_ends_the_call_and_the_next_one_asks(way: Way) -> None:
    await way.runs()
    way.vendor.answers["tools/call"] = says(404, b"<html>", b"Content-Type: text/html\r\n")
    assert await way.fails() is VendorFault.BAD_RESPONSE
    assert way.vendor.seen == {"server/discover": 1, "tools/call": 2}, "sent once more by nobody"
    way.clock.now_s += 10
    assert await way.fails() is VendorFault.BAD_RESPONSE
    way.vendor.answers.clear()
    way.vendor.era = "earlier"
    await way.runs()
    assert (way.vendor.seen["server/discover"], way.vendor.seen["initialize"], way.vendor.ran) == (2, 1, 2)


async def test_a_result_of_an_earlier_revision_counts_and_casts_doubt(way: Way) -> None:
    await way.runs()

    async def ignores_versions(writer: StreamWriter, asked: dict[str, Any]) -> None:
        way.vendor.ran += 1
        answer(writer, asked, way.vendor.result)

    way.vendor.answers["tools/call"] = ignores_versions
    way.clock.now_s += 10
    await way.runs()
    way.vendor.answers.clear()
    way.vendor.era = "earlier"
    await way.runs()
    assert (way.vendor.ran, way.vendor.seen["tools/call"], way.vendor.seen["server/discover"]) == (3, 3, 2)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, UNSUPPORTED_MODERN),
        (400, {"code": -32602, "message": "params._meta is missing"}),
        (404, {"code": -32601, "message": "Method not found"}),
    ],
)
async def test_a_handshake_that_is_refused_asks_again(way: Way, status: int, error: dict[str, Any]) -> None:
    """As after a restart, when the session of before is unknown too."""
    way.vendor.era = "earlier"
    await way.runs()
    way.pool.evict(way.destination(), await way.pool.lease(way.destination(), deadline=1e9))
    way.vendor.era = "modern"

    async def refuses(writer: StreamWriter, asked: dict[str, Any]) -> None:
        refuse(writer, error, status=status, message_id=asked["id"])

    way.vendor.answers["initialize"] = refuses
    await way.runs()
    assert way.vendor.seen == {"server/discover": 2, "initialize": 2, "notifications/initialized": 1, "tools/call": 2}
    assert way.vendor.ran == 2


async def test_a_vendor_in_trouble_is_not_asked_at_each_attempt(way: Way) -> None:
    way.vendor.era = "earlier"
    await way.runs()
    way.pool.evict(way.destination(), await way.pool.lease(way.destination(), deadline=1e9))
    way.vendor.answers["initialize"] = way.vendor.answers["server/discover"] = says(200, b"<html>maintenance</html>")
    for _ in range(3):
        assert await way.fails() is VendorFault.BAD_RESPONSE
    assert way.vendor.seen["server/discover"] == 2
    way.vendor.answers.clear()
    await way.runs()
    assert way.vendor.ran == 2


def huge(start: bytes) -> bytes:
    return (
        start
        + b'{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["%b"' % OURS.encode()
        + b" " * 10_000_000
        + b"]}}"
    )


def discovered(*versions: str) -> bytes:
    result = {"supportedVersions": versions, "resultType": "complete"}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def error(code: int, data: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}}).encode()


EVENTS, HTML = b"Content-Type: text/event-stream\r\n", b"Content-Type: text/html\r\n"
SAYS_EARLIER = {
    "garbage": says(200, b"\x00\xff{]"),
    "an HTML page": says(200, b"<!doctype html><h1>Welcome</h1>", HTML),
    "an empty body": says(200, b""),
    "no events": says(200, b": nothing\n\n", EVENTS),
    "ten megabytes": says(200, huge(b"")),
    "ten megabytes in an event": says(200, huge(b"data: ") + b"\n\n", EVENTS),
    "deep nesting": says(200, b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 50_000),
    "another id": says(200, discovered(OURS).replace(b'"id": 1', b'"id": 77')),
    "a later version only": says(200, discovered(*LATER)),
    "an earlier version only": says(200, discovered("2025-11-25")),
    "versions that are no list": says(200, discovered(OURS).replace(f'["{OURS}"]'.encode(), f'"{OURS}"'.encode())),
    "an error of a later version": says(400, error(-32022, {"supported": LATER})),
    "an error without its data": says(400, error(-32022)),
    "an unknown method": says(404, error(-32601)),
    "not allowed": says(405, b""),
}
SAYS_NOTHING = {
    "a redirect": says(307, b"", b"Location: https://evil.example.com/mcp\r\n"),
    "forbidden": says(403, b"<h1>Blocked</h1>", HTML),
    "a failure": says(500, b"oops", HTML),
    "too early": says(425, b""),
}


@pytest.mark.parametrize("said", SAYS_EARLIER)
async def test_an_odd_answer_leads_to_the_handshake(way: Way, said: str) -> None:
    way.vendor.era = "earlier"
    way.vendor.answers["server/discover"] = SAYS_EARLIER[said]
    await way.runs()
    assert (way.vendor.seen["server/discover"], way.vendor.seen["initialize"], way.vendor.ran) == (1, 1, 1)
    known = await way.verdicts.known(way.destination().key)
    assert known is not None
    assert (known.version, known.is_provisional) == ("2025-11-25", False)


@pytest.mark.parametrize("said", SAYS_NOTHING)
async def test_an_answer_about_something_else_leaves_no_lasting_verdict(way: Way, said: str) -> None:
    way.vendor.era = "earlier"
    way.vendor.answers["server/discover"] = SAYS_NOTHING[said]
    await way.runs()
    known = await way.verdicts.known(way.destination().key)
    assert known is not None
    assert known.is_provisional


@pytest.mark.parametrize("is_silent", [True, False])
async def test_no_answer_at_all_leads_to_the_handshake(
    way: Way, is_silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "ASK_WITHIN_S", 0.3)

    async def nothing(writer: StreamWriter, asked: dict[str, Any]) -> None:
        if not is_silent:
            writer.transport.abort()

    way.vendor.era = "earlier"
    way.vendor.answers["server/discover"] = nothing
    await way.runs()
    known = await way.verdicts.known(way.destination().key)
    assert known is not None
    assert known.is_provisional


async def test_an_answer_that_is_not_http_leads_to_the_handshake(way: Way) -> None:
    async def noise(writer: StreamWriter, asked: dict[str, Any]) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()

    way.vendor.era = "earlier"
    way.vendor.answers["server/discover"] = noise
    await way.runs()
    known = await way.verdicts.known(way.destination().key)
    assert known is not None
    assert known.is_provisional


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (says(401, b"", b"WWW-Authenticate: Bearer\r\n"), VendorFault.REJECTED_CREDENTIALS),
        (says(429, b""), VendorFault.UNAVAILABLE),
    ],
)
async def test_refused_credentials_and_limits_end_the_attempt(way: Way, said: Any, fault: VendorFault) -> None:
    way.vendor.answers["server/discover"] = said
    assert await way.fails() is fault
    assert way.vendor.seen == {"server/discover": 1}
    assert await way.verdicts.known(way.destination().key) is None


async def test_a_vendor_that_is_no_mcp_server_leaves_no_verdict(way: Way) -> None:
    way.vendor.answers = dict.fromkeys(["server/discover", "initialize"], says(200, b"<html>", HTML))
    assert await way.fails() is VendorFault.BAD_RESPONSE
    assert await way.verdicts.known(way.destination().key) is None
    way.vendor.answers.clear()
    await way.runs()


@pytest.mark.parametrize("version", ["2099-01-01", "", "2026-07-28"])
async def test_a_handshake_in_an_unknown_version(way: Way, version: str) -> None:
    way.vendor.era = "earlier"

    async def shakes(writer: StreamWriter, asked: dict[str, Any]) -> None:
        answer(writer, asked, {"protocolVersion": version, "capabilities": {}})

    way.vendor.answers["initialize"] = shakes
    assert await way.fails() is VendorFault.BAD_RESPONSE
    assert way.vendor.ran == 0


async def test_who_refuses_every_version_is_tried_twice_at_most(way: Way) -> None:
    await way.runs()

    async def refuses(writer: StreamWriter, asked: dict[str, Any]) -> None:
        data = {"supported": LATER, "requested": OURS}
        refuse(writer, {"code": -32022, "message": "no", "data": data}, message_id=asked["id"])

    way.vendor.answers["tools/call"] = refuses
    assert await way.fails() is VendorFault.BAD_RESPONSE
    assert (way.vendor.seen["tools/call"], way.vendor.seen["server/discover"], way.vendor.ran) == (3, 2, 1)


async def test_a_vendor_that_shall_not_be_asked_is_not(way: Way) -> None:
    """By the catalog; a session of before does not stay in use."""
    way.vendor.answers["initialize"] = says(404, b"")
    await way.runs()
    asked = way.destination()
    key = PoolKey.of(ORGS[0], "acme", ORGS[0], way.vendor.url, {}, newest_protocol=False)
    assert key != asked.key
    plain = replace(asked, key=key, newest_protocol=False)
    way.vendor.answers.clear()
    way.vendor.era = "earlier"
    await send_request(way.pool, plain, RpcRequest("tools/list", {}, asyncio.get_running_loop().time() + 10))
    assert (way.vendor.seen["server/discover"], way.vendor.seen["initialize"]) == (1, 1)


async def test_after_a_day_a_session_without_id_ends_and_the_vendor_is_asked(way: Way) -> None:
    way.vendor.era, way.vendor.has_sessions = "earlier", False
    await way.runs()
    way.clock.now_s += DAY_S
    way.pool.close_idle()
    way.vendor.era = "modern"
    await way.runs()
    assert (way.vendor.seen["server/discover"], way.vendor.seen["initialize"], way.vendor.ran) == (2, 1, 2)


EVENT = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b,"progress":1}}\n\n'


@pytest.mark.parametrize("has_end", [True, False])
async def test_progress_reaches_the_caller_and_a_cut_stream_is_not_resumed(way: Way, has_end: bool) -> None:
    async def reports(writer: StreamWriter, asked: dict[str, Any]) -> None:
        token = asked["params"]["_meta"]["progressToken"]
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(b"id: 7\n" + EVENT % json.dumps(token).encode())
        result = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete", "content": []}})
        if has_end:
            writer.write(b"data: " + result.encode() + b"\n\n")
        await writer.drain()
        writer.close()

    way.vendor.answers["tools/call"] = reports
    relay = ProgressRelay(Wanted("mine", "warning"))
    if has_end:
        found = await way.send(relay=relay)
        assert json.loads(found.raw_result) == {"content": []}
    else:
        with pytest.raises(VendorProblem):
            await way.send(relay=relay)
    assert re.search(rb'"progressToken":"mine"', relay.pop() or b"")
    assert way.vendor.params["_meta"][f"{META}logLevel"] == "warning"
    assert way.vendor.seen == {"server/discover": 1, "tools/call": 1}, "no GET, and no second call"


@pytest.mark.parametrize("kind", ["task", "surprise", 7, ""])
async def test_a_result_of_an_unknown_type_is_no_result(way: Way, kind: object) -> None:
    way.vendor.result = {"resultType": kind}
    assert await way.fails() is VendorFault.BAD_RESPONSE
    assert way.vendor.ran == 1


@pytest.mark.parametrize("code", [-32020, -32022])
async def test_a_code_of_an_earlier_vendors_own_repeats_no_call(way: Way, code: int) -> None:
    """The earlier revisions leave these codes to servers: the tool may have run before the vendor answers so."""
    way.vendor.era = "earlier"

    async def runs_and_refuses(writer: StreamWriter, asked: dict[str, Any]) -> None:
        way.vendor.ran += 1
        refuse(writer, {"code": code, "message": "quota of the month used up"}, message_id=asked["id"])

    way.vendor.answers["tools/call"] = runs_and_refuses
    found = await way.send()
    assert isinstance(found, replies.RpcError)
    assert (found.code, way.vendor.ran, way.vendor.seen["tools/call"]) == (code, 1, 1)
