"""The bytes that connections send."""

from __future__ import annotations

import json

from bench import targets
from bench import vendor_answers as vendor


def split(request: bytes) -> tuple[str, dict[str, str], dict[str, object]]:
    head, body = request.split(b"\r\n\r\n", 1)
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body)
    return first, headers, json.loads(body)


def test_each_connection_asks_for_its_own_site_and_expects_it() -> None:
    requests, marks = targets.vendor_requests("key", "session"), targets.marks()
    assert len(requests) == len(marks) == targets.SITES == len(set(marks))
    for request, mark in zip(requests, marks, strict=True):
        _, headers, message = split(request)
        assert (headers["X-Bench-Key"], headers["Mcp-Session-Id"]) == ("key", "session")
        assert mark == vendor.marker(message["params"]["arguments"]["site"]).encode()  # type: ignore[index]


def test_callers_alternate() -> None:
    bearers = [
        split(request)[1]["Authorization"] for request in targets.gateway_requests(targets.MCP_KEY, ["k1", "k2"], ["t"])
    ]
    assert bearers[:4] == ["Bearer k1", "Bearer k2", "Bearer k1", "Bearer k2"]


def test_routes_and_names_of_the_gateway() -> None:
    first, headers, message = split(targets.gateway_requests(targets.MCP_JWT, ["key"], ["token"])[0])
    assert first == "POST /v1/mcp HTTP/1.1"
    assert headers["Authorization"] == "Bearer token"
    assert message["params"]["name"] == "bench_read_site"  # type: ignore[index]
    first, headers, message = split(targets.gateway_requests(targets.CLI, ["key"], ["token"])[0])
    assert first == "POST /v1/bench/cli HTTP/1.1"
    assert message == {"tool": "read-site", "args": {"site": "site-00"}}
    _, headers, message = split(targets.gateway_requests(targets.MCP_WRITE, ["key"], ["token"])[0])
    assert headers["Authorization"] == "Bearer key"
    assert message["params"]["name"] == "bench_write_site"  # type: ignore[index]


def test_progress_is_asked_for_by_a_token_of_each_call() -> None:
    requests = targets.gateway_requests(targets.MCP_STREAM, ["key"], ["token"])
    messages = [split(request)[2] for request in requests]
    assert {message["params"]["name"] for message in messages} == {"bench_stream_site"}  # type: ignore[index]
    tokens = [message["params"]["_meta"]["progressToken"] for message in messages]  # type: ignore[index]
    assert len(set(tokens)) == targets.SITES
    _, _, message = split(targets.gateway_requests(targets.MCP_KEPT, ["key"], ["token"])[0])
    assert message["params"] == {"name": "bench_kept_site", "arguments": {"site": "site-00"}}


def test_lists_are_asked_for_by_each_caller_and_must_be_whole() -> None:
    requests = targets.list_requests(["k1", "k2"])
    assert [split(request)[1]["Authorization"] for request in requests] == ["Bearer k1", "Bearer k2"]
    assert split(requests[0])[2]["method"] == "tools/list"
    assert targets.list_mark() == b'"listed_49_tool_23"'
