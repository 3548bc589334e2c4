"""One call of a tool as curl, MCP and CLI. Secrets appear only as names of environment variables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Snippet:
    slug: str
    title: str
    code: str


def call_snippets(base_url: str, vendor: str, tool: str, arguments: Mapping[str, Any]) -> list[Snippet]:
    """One call of a tool, by its exposed name, as an agent or a script makes it."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    command = {"tool": tool, "args": arguments}
    return [
        Snippet("curl", "curl", _curl_post(f"{base_url}/v1/mcp", "$GATEWAY_KEY", message)),
        Snippet("mcp", "MCP", json.dumps(message, indent=2, ensure_ascii=False)),
        Snippet("cli", "CLI", _curl_post(f"{base_url}/v1/{vendor}/cli", "$TOKEN", command)),
    ]


def _curl_post(url: str, bearer: str, body: Mapping[str, Any]) -> str:
    return (
        f'curl -sS {url} \\\n  -H "Authorization: Bearer {bearer}" \\\n'
        '  -H "Content-Type: application/json" \\\n  -H "Accept: application/json, text/event-stream" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    )
