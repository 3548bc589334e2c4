"""Pure: the configuration of each client with an agent key filled in, for the page that shows the key once."""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.lib.sentences import sentence

# By slug, in the order of the form.
CLIENTS = {
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "codex": "Codex",
    "other": sentence("Another MCP client"),
    "curl": "curl",
}


@dataclass(frozen=True, slots=True)
class AgentSnippet:
    slug: str
    client: str
    where: str
    code: str


def agent_snippets(mcp_url: str, agent_key: str) -> list[AgentSnippet]:
    """One for each of CLIENTS, in their order."""
    bearer = f"Bearer {agent_key}"
    entry = {"url": mcp_url, "headers": {"Authorization": bearer}}
    typed = {"type": "http", **entry}
    written = {
        "claude-code": (
            sentence("In a terminal"),
            f'claude mcp add --transport http gateway {mcp_url} --header "Authorization: {bearer}"',
        ),
        "cursor": ("~/.cursor/mcp.json", _pretty({"mcpServers": {"gateway": entry}})),
        "vscode": (".vscode/mcp.json", _pretty({"servers": {"gateway": typed}})),
        "codex": (
            sentence("In a terminal. Codex reads the key from the variable each time it starts."),
            f"export GATEWAY_KEY={agent_key}\ncodex mcp add gateway --url {mcp_url} --bearer-token-env-var GATEWAY_KEY",
        ),
        "other": (sentence("The client’s MCP configuration"), _pretty({"mcpServers": {"gateway": typed}})),
        "curl": (sentence("In a terminal"), _curl(mcp_url, bearer)),
    }
    return [AgentSnippet(slug, client, *written[slug]) for slug, client in CLIENTS.items()]


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2)


def _curl(mcp_url: str, bearer: str) -> str:
    return (
        f'curl -sS {mcp_url} \\\n  -H "Authorization: {bearer}" \\\n'
        '  -H "Content-Type: application/json" \\\n  -H "Accept: application/json, text/event-stream" \\\n'
        '  -d \'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\''
    )
