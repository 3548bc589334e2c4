"""The bytes that connections send."""

from __future__ import annotations

import json

from bench import targets, vendor


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
