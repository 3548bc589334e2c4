"""A vendor that speaks one revision of MCP only: `modern_server.py ERA PORT`, ERA is modern or legacy.

It counts what its tools ran, at /_stats, and where it is to count on after a restart it is told so by START.
Runs on the newest Python SDK.
"""

import json
import sys
from collections import Counter
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

HOST = "127.0.0.1"
VERSIONS = {"modern": ["2026-07-28"], "legacy": ["2025-11-25", "2025-06-18", "2025-03-26"]}
UNSUPPORTED = {"modern": -32022, "legacy": -32600}

ran: Counter[str] = Counter()
seen: Counter[str] = Counter()
server: MCPServer[Any] = MCPServer("one-era", version="4.2", log_level="WARNING")


@server.tool(description="Says the words again.")
def echo(words: str) -> str:
    ran["echo"] += 1
    return words


@server.tool(description="Finds the devices of a region.")
def find(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], count: int = 1) -> str:
    ran["find"] += 1
    return f"{count} in {region}"


@server.tool(description="Reports progress.")
async def report(steps: int, context: Context[Any]) -> str:
    ran["report"] += 1
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, "on the way")
    return "done"


async def say(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class OneEra:
    """The SDK's application, without the other era."""

    def __init__(self, era: str) -> None:
        self.era, self.app = era, server.streamable_http_app()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == "/_stats":
            await say(send, 200, json.dumps({"ran": ran, "seen": seen}).encode())
        else:
            headers = dict(scope["headers"])
            seen[headers.get(b"mcp-method", b"-").decode()] += 1
            version = headers.get(b"mcp-protocol-version", b"").decode()
            is_modern = version in VERSIONS["modern"]
            if is_modern == (self.era == "modern"):
                await self.app(scope, receive, send)
            else:
                await self.refuse(version, send)

    async def refuse(self, version: str, send: Any) -> None:
        supported = VERSIONS[self.era]
        if self.era == "modern":
            data = {"supported": supported, "requested": version or "2025-11-25"}
            error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        else:
            text = f"Bad Request: Unsupported protocol version: {version}. Supported versions: {', '.join(supported)}"
            error = {"code": -32600, "message": text}
        await say(send, 400, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())


if __name__ == "__main__":
    uvicorn.run(OneEra(sys.argv[1]), host=HOST, port=int(sys.argv[2]), log_level="warning")  # type: ignore[arg-type]
