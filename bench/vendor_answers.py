"""Pure: what the stand-in vendor answers."""

from __future__ import annotations

from typing import Any

import msgspec

PROTOCOL_VERSION = "2025-06-18"
READ_TOOL, WRITE_TOOL, KEPT_TOOL, STREAM_TOOL = "read_site", "write_site", "kept_site", "stream_site"
TEXT_BYTES = 1024
# Notifications before the result of STREAM_TOOL.
PROGRESS_STEPS = 3
LIST_TOOLS = 24  # of each vendor under LIST_PATH
LIST_PATH = b"/mcp/list"
_FILLING = "The quick brown fox jumps over the lazy dog. "
_SITE_SCHEMA = {"type": "object", "properties": {"site": {"type": "string"}}, "required": ["site"]}
_READ_ONLY = {"readOnlyHint": True}
TOOLS = [
    {"name": READ_TOOL, "description": "Read.", "inputSchema": _SITE_SCHEMA, "annotations": _READ_ONLY},
    {"name": WRITE_TOOL, "description": "Write.", "inputSchema": _SITE_SCHEMA},
    {"name": KEPT_TOOL, "description": "Read, kept.", "inputSchema": _SITE_SCHEMA, "annotations": _READ_ONLY},
    {"name": STREAM_TOOL, "description": "Read slowly.", "inputSchema": _SITE_SCHEMA, "annotations": _READ_ONLY},
]


def listed_tool(number: int) -> str:
    """The name of a tool of the vendors under LIST_PATH."""
    return f"tool_{number:02d}"


MANY_TOOLS = [
    {
        "name": listed_tool(number),
        "description": f"Tool {number}. {_FILLING * 3}",
        "inputSchema": _SITE_SCHEMA,
        "annotations": _READ_ONLY,
    }
    for number in range(LIST_TOOLS)
]


def marker(site: str) -> str:
    """The beginning of a result's text for `site`."""
    return f"BENCH-OK {site};"


def result_text(site: str) -> str:
    """Pure: about a kilobyte of text that names the site."""
    head = marker(site) + " "
    return (head + _FILLING * (TEXT_BYTES // len(_FILLING) + 1))[:TEXT_BYTES]


_REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
}


def answer(status: int, body: bytes = b"", *, kind: str = "application/json", headers: str = "") -> bytes:
    """Pure: one HTTP answer."""
    length = "" if status == 204 else f"Content-Length: {len(body)}\r\n"
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n{length}{headers}\r\n"
    return head.encode("latin-1") + body


def rpc(message_id: int | str | None, member: str, value: Any) -> bytes:
    """Pure: an answer that holds a JSON-RPC result or error."""
    return answer(200, msgspec.json.encode({"jsonrpc": "2.0", "id": message_id, member: value}))


def handshake(message_id: int | str | None, session_id: str) -> bytes:
    """Pure: the answer to initialize."""
    result = {
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bench-vendor", "version": "1"},
    }
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": message_id, "result": result})
    return answer(200, body, headers=f"Mcp-Session-Id: {session_id}\r\n")


def tool_result(message_id: int | str | None, site: str, form: str) -> bytes:
    """Pure: the answer to tools/call, as JSON or as a stream of one event."""
    result = {"content": [{"type": "text", "text": result_text(site)}], "isError": False}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": message_id, "result": result})
    if form == "json":
        return answer(200, body)
    event = b"event: message\ndata: " + body + b"\n\n"
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event)
    )


def progress_stream(message_id: int | str | None, token: int | str | None, site: str) -> list[bytes]:
    """Pure: the answer to tools/call as a stream of notifications and the result, in the parts that are sent."""
    events: list[dict[str, object]] = [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": step, "total": PROGRESS_STEPS},
        }
        for step in range(1, PROGRESS_STEPS + 1)
        if token is not None
    ]
    result = {"content": [{"type": "text", "text": result_text(site)}], "isError": False}
    events.append({"jsonrpc": "2.0", "id": message_id, "result": result})
    chunks = [b"event: message\ndata: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), b"0\r\n\r\n"]
