"""The official Python SDK talks over standard input to mcp-remote, which signs in with the desktop's browser:
python -m tests.clients.python.through_mcp_remote NODE MCP_REMOTE MCP_URL
"""

from __future__ import annotations

import asyncio
import os
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.clients.python.person import report


async def main(*command: str) -> None:
    """See the module's text."""
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:
        listed = await client.list_tools()
        called = await client.call_tool("acme_whoami", {})
    report(tools=[tool.name for tool in listed.tools], called=called.structured_content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
