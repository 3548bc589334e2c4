"""Pure: the report of a successful start, on the terminal and in ready.json. Contract: 2"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass

SEED_KEYS = ("org_id", "owner_email", "agent_key", "client_id", "client_secret")
CLI_VENDOR = "acme"
CLI_TOOL = "list-devices"
READ_TOKEN = "import json, sys; print(json.load(sys.stdin)['access_token'])"  # noqa: S105 - a program, not a token


@dataclass(frozen=True, slots=True)
class Ready:
    """The content of ready.json. Without the demo the last seven are None. Contract: 2"""

    base_url: str
    mcp_url: str
    idp_url: str | None = None
    vendor_url: str | None = None
    org_id: str | None = None
    owner_email: str | None = None
    agent_key: str | None = None
    client_id: str | None = None
    client_secret: str | None = None

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"


def ready_facts(*, base_url: str, idp_url: str | None, vendor_url: str | None, seed: Mapping[str, object]) -> Ready:
    """`seed` is the demo seeding's output, empty without the demo. Raises: KeyError naming a missing key."""
    values = {key: str(seed[key]) for key in SEED_KEYS} if seed else {}
    return Ready(base_url=base_url, mcp_url=f"{base_url}/v1/mcp", idp_url=idp_url, vendor_url=vendor_url, **values)


def list_tools_line(ready: Ready) -> str:
    """A shell command that lists the tools with the agent key."""
    return " ".join(
        [
            f"curl -sS {shlex.quote(ready.mcp_url)}",
            f"-H {shlex.quote(f'Authorization: Bearer {ready.agent_key}')}",
            "-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'",
            """-d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'""",
        ]
    )


def call_tool_line(ready: Ready) -> str:
    """A shell command that gets a service-client token and calls one tool. Spec: §4.14, §5 (2)"""
    fields = {"grant_type": "client_credentials", "client_id": ready.client_id, "client_secret": ready.client_secret}
    form = " ".join(f"-d {shlex.quote(f'{name}={value}')}" for name, value in (fields | {"scope": "mcp:all"}).items())
    token = f'curl -sS {shlex.quote(f"{ready.base_url}/oauth/token")} {form} | python3 -c "{READ_TOKEN}"'
    return " ".join(
        [
            f"curl -sS {shlex.quote(f'{ready.base_url}/v1/{CLI_VENDOR}/cli')}",
            f'-H "Authorization: Bearer $({token})"',
            "-H 'Content-Type: application/json'",
            f"""-d '{{"tool":"{CLI_TOOL}","args":{{}}}}'""",
        ]
    )


def terminal_block(ready: Ready, *, folder: str, elapsed_s: float, has_sign_in: bool) -> list[str]:
    """The terminal lines; commands to paste are not indented."""
    last = ["", f"Data and logs are in {folder}. Ctrl-C stops everything."]
    lines = ["", f"Ready after {elapsed_s:.1f} s.", ""]
    if ready.agent_key is None:
        sign_in = f"{ready.base_url}/signin" if has_sign_in else "set OIDC_OP_DISCOVERY_URL to let people sign in"
        return [*lines, f"  Sign in     {sign_in}", f"  MCP         {ready.mcp_url}", *last]
    return [
        *lines,
        f"  Sign in     {ready.base_url}/signin",
        f"  as          {ready.owner_email}",
        f"  Agent key   {ready.agent_key}",
        "",
        "List the tools:",
        list_tools_line(ready),
        "",
        "Call one of them from a script:",
        call_tool_line(ready),
        *last,
    ]
