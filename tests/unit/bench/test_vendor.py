"""The stand-in vendor: what it answers to what comes over the wire."""

from __future__ import annotations

import json
from typing import Any

import httptools
import pytest

from bench import vendor as bench_vendor
from bench.vendor import MAX_BODY_BYTES, Vendor, VendorConnection
from bench.vendor_answers import (
    LIST_TOOLS,
    PROGRESS_STEPS,
    PROTOCOL_VERSION,
    STREAM_TOOL,
    TEXT_BYTES,
    marker,
    result_text,
    tool_result,
)


class Transport:
    """Remembers what was written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True


class Answer:
    """One parsed HTTP answer."""

    def __init__(self, data: bytes) -> None:
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_complete = False
        parser = httptools.HttpResponseParser(self)
        parser.feed_data(data)
        self.status = parser.get_status_code()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_complete = True


class Client:
    """Speaks to one connection of a vendor whose key is `key`."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Any, tuple[Any, ...]]] = []
        self.vendor = Vendor("key", call_later=lambda delay, call, *given: self.later.append((delay, call, given)))
        self.connection, self.transport = VendorConnection(self.vendor), Transport()
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        before = len(self.transport.written)
        self.connection.data_received("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return Answer(b"".join(self.transport.written[before:] or self.transport.written[-1:]))

    def rpc(self, method: str, params: object = None, *, message_id: int | None = 1, **headers: str) -> Answer:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if message_id is not None:
            message["id"] = message_id
        return self.send("POST", "/mcp", json.dumps(message).encode(), **{"X_Bench_Key": "key", **headers})

    def session(self) -> str:
        return self.rpc("initialize").headers["mcp-session-id"]

    def call(self, name: str = bench_vendor.READ_TOOL, site: str = "hq", **headers: str) -> Answer:
        return self.rpc("tools/call", {"name": name, "arguments": {"site": site}}, **headers)


@pytest.fixture
def client() -> Client:
    return Client()


def test_the_handshake_opens_a_session(client: Client) -> None:
    answer = client.rpc("initialize", message_id=0)
    assert answer.status == 200
    assert json.loads(answer.body)["id"] == 0
    assert json.loads(answer.body)["result"]["protocolVersion"] == PROTOCOL_VERSION
    session = answer.headers["mcp-session-id"]
    assert client.rpc("notifications/initialized", message_id=None, Mcp_Session_Id=session).status == 202


def test_a_call_answers_with_its_own_site(client: Client) -> None:
    answer = client.call(site="site-11", Mcp_Session_Id=client.session())
    text = json.loads(answer.body)["result"]["content"][0]["text"]
    assert text.startswith(marker("site-11"))
    assert len(text) == TEXT_BYTES


def test_one_tool_is_not_read_only(client: Client) -> None:
    answer = client.rpc("tools/list", Mcp_Session_Id=client.session())
    tools = json.loads(answer.body)["result"]["tools"]
    assert [tool.get("annotations", {}).get("readOnlyHint", False) for tool in tools] == [True, False, True, True]


def test_the_vendors_of_a_long_list_have_other_tools(client: Client) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    answer = client.send("POST", "/mcp/list/7", body, X_Bench_Key="key", Mcp_Session_Id=client.session())
    names = [tool["name"] for tool in json.loads(answer.body)["result"]["tools"]]
    assert len(names) == len(set(names)) == LIST_TOOLS
    assert bench_vendor.READ_TOOL not in names


@pytest.mark.parametrize(("meta", "steps"), [({"_meta": {"progressToken": "t"}}, PROGRESS_STEPS), ({}, 0)])
def test_progress_comes_before_the_result_if_a_token_asks_for_it(
    client: Client, meta: dict[str, object], steps: int
) -> None:
    session = client.session()
    params = {"name": STREAM_TOOL, "arguments": {"site": "site-3"}, **meta}
    message = {"jsonrpc": "2.0", "method": "tools/call", "id": 9, "params": params}
    answer = client.send("POST", "/mcp", json.dumps(message).encode(), X_Bench_Key="key", Mcp_Session_Id=session)
    assert answer.is_complete
    *notes, result = [json.loads(line[6:]) for line in answer.body.splitlines() if line.startswith(b"data: ")]
    assert [note["params"] for note in notes] == [
        {"progressToken": "t", "progress": number, "total": PROGRESS_STEPS} for number in range(1, steps + 1)
    ]
    assert (result["id"], result["result"]["content"][0]["text"].startswith(marker("site-3"))) == (9, True)


@pytest.mark.parametrize("key", ["", "wrong"])
def test_another_key_is_refused(client: Client, key: str) -> None:
    session = client.session()
    assert client.call(X_Bench_Key=key, Mcp_Session_Id=session).status == 401
    assert client.vendor.counts["unauthorized"] == 1
    assert client.vendor.counts["tools/call"] == 0


@pytest.mark.parametrize("session", ["", "unknown"])
def test_a_session_that_was_not_opened_is_refused(client: Client, session: str) -> None:
    assert client.call(Mcp_Session_Id=session).status == 404
    assert client.vendor.counts["unknown_session"] == 1


def test_unknown_tools_and_methods_are_errors(client: Client) -> None:
    session = client.session()
    for answer in (client.call(name="other", Mcp_Session_Id=session), client.rpc("ping", Mcp_Session_Id=session)):
        assert json.loads(answer.body)["error"]["code"] == -32601


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"method":1}', b"\xff"])
def test_what_is_no_message_is_refused(client: Client, body: bytes) -> None:
    assert client.send("POST", "/mcp", body, X_Bench_Key="key").status == 400
    assert client.vendor.counts["malformed"] == 1


def test_what_is_no_http_ends_the_connection(client: Client) -> None:
    client.connection.data_received(b"\x16\x03\x01")
    assert client.transport.is_closed


def test_a_body_is_held_up_to_a_bound(client: Client) -> None:
    assert client.send("POST", "/mcp", b" " * (MAX_BODY_BYTES + 1), X_Bench_Key="key").status == 400


def test_a_delayed_answer_is_sent_later(client: Client) -> None:
    session = client.session()
    assert client.send("GET", "/_set?delay_ms=50&form=json").status == 204
    before = len(client.transport.written)
    client.call(Mcp_Session_Id=session)
    assert len(client.transport.written) == before
    delay_s, send, given = client.later[0]
    assert delay_s == 0.05
    send(*given)
    assert Answer(client.transport.written[-1]).status == 200


def test_a_delayed_answer_to_a_lost_connection_goes_nowhere(client: Client) -> None:
    session = client.session()
    client.send("GET", "/_set?delay_ms=50")
    client.call(Mcp_Session_Id=session)
    before = len(client.transport.written)
    client.connection.connection_lost(None)
    _, send, given = client.later[0]
    send(*given)
    assert len(client.transport.written) == before


@pytest.mark.parametrize("query", ["delay_ms=-1", "delay_ms=60001", "delay_ms=x", "form=xml", "nonsense"])
def test_delays_and_forms_out_of_bounds_are_refused(client: Client, query: str) -> None:
    assert client.send("GET", f"/_set?{query}").status == 400
    assert (client.vendor.delay_s, client.vendor.form) == (0.0, "json")


def test_an_event_stream_holds_the_same_message() -> None:
    as_json, as_stream = Answer(tool_result(5, "hq", "json")), Answer(tool_result(5, "hq", "sse"))
    assert as_stream.headers["content-type"] == "text/event-stream"
    assert as_stream.is_complete
    assert as_stream.body == b"event: message\ndata: " + as_json.body + b"\n\n"


def test_counters_are_reported(client: Client) -> None:
    client.call(Mcp_Session_Id=client.session())
    counts = json.loads(client.send("GET", "/_stats").body)
    assert (counts["posts"], counts["initialize"], counts["tools/call"]) == (2, 1, 1)


def test_other_methods_and_paths(client: Client) -> None:
    assert client.send("GET", "/mcp", X_Bench_Key="key").status == 405
    assert client.send("DELETE", "/mcp", X_Bench_Key="key").status == 200
    assert client.send("GET", "/other").status == 404


def test_the_text_names_the_site_and_is_a_kilobyte() -> None:
    assert result_text("a") != result_text("b")
    assert len(result_text("x" * 40)) == TEXT_BYTES
