"""Pure: setup snippets for each client. Secrets appear only as names of environment variables. Spec: ux 6"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Snippet:
    """One tab; `link` installs the server with one click where the client supports that."""

    slug: str
    client: str
    where: str
    code: str
    link: str = ""


def snippets(base_url: str, vendor: str) -> list[Snippet]:
    """`vendor` is the slug in the CLI example."""
    mcp_url = f"{base_url}/v1/mcp"
    entry = {"url": mcp_url}
    vscode = {"name": "gateway", "type": "http", "url": mcp_url}
    # Cursor's install link carries its configuration in base64.
    cursor_config = base64.b64encode(json.dumps(entry).encode()).decode()
    return [
        Snippet("claude-code", "Claude Code", "In a terminal", f"claude mcp add --transport http gateway {mcp_url}"),
        Snippet(
            "claude-code-key",
            "Claude Code (agent key)",
            "In a terminal, for agents that cannot sign in",
            f'claude mcp add --transport http gateway {mcp_url} --header "Authorization: Bearer $GATEWAY_KEY"',
        ),
        Snippet("claude", "Claude", "Settings, Connectors, Add custom connector", mcp_url),
        Snippet(
            "cursor",
            "Cursor",
            "~/.cursor/mcp.json",
            json.dumps({"mcpServers": {"gateway": entry}}, indent=2),
            f"cursor://anysphere.cursor-deeplink/mcp/install?name=gateway&config={quote(cursor_config)}",
        ),
        Snippet(
            "vscode",
            "VS Code",
            ".vscode/mcp.json",
            json.dumps({"servers": {"gateway": {"type": "http", "url": mcp_url}}}, indent=2),
            f"vscode:mcp/install?{quote(json.dumps(vscode))}",
        ),
        Snippet("codex", "Codex", "In a terminal", f"codex mcp add gateway --url {mcp_url}"),
        Snippet("curl-mcp", "curl (MCP)", "In a terminal; needs GATEWAY_KEY", _curl_mcp(mcp_url)),
        Snippet(
            "curl-cli",
            "curl (plain JSON)",
            "In a terminal; needs GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET",
            _curl_cli(base_url, vendor),
        ),
    ]


def _curl_mcp(mcp_url: str) -> str:
    return (
        f'curl -sS {mcp_url} \\\n  -H "Authorization: Bearer $GATEWAY_KEY" \\\n'
        '  -H "Content-Type: application/json" \\\n  -H "Accept: application/json, text/event-stream" \\\n'
        '  -d \'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\''
    )


def _curl_cli(base_url: str, vendor: str) -> str:
    return (
        f"TOKEN=$(curl -sS {base_url}/oauth/token \\\n  -d grant_type=client_credentials \\\n"
        '  -d "client_id=$GATEWAY_CLIENT_ID" -d "client_secret=$GATEWAY_CLIENT_SECRET" \\\n'
        "  | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"access_token\"])')\n"
        f'curl -sS {base_url}/v1/{vendor}/cli/schema -H "Authorization: Bearer $TOKEN"'
    )
