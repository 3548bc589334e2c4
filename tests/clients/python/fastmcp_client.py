"""FastMCP's client signs in with the desktop's browser and its own callback server, lists the tools and calls one:
python -m tests.clients.python.fastmcp_client MCP_URL
"""

from __future__ import annotations

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.auth import OAuth

from tests.clients.python.person import report


async def main(url: str) -> None:
    """See the module's text."""
    async with Client(url, auth=OAuth(callback_timeout=30.0)) as client:
        tools = await client.list_tools()
        called = await client.call_tool("acme_whoami", {})
    report(tools=[tool.name for tool in tools], called=called.structured_content)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
