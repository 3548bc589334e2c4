"""The official Python SDK 2.x as a service client, without a person: lists the tools and calls one.

python -m tests.clients.python.headless_sdk_2 MCP_URL METHOD, where METHOD is how the client authenticates; its id and
secret are SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from tests.clients.python.person import MemoryStorage, report


async def main(url: str, method: Any) -> None:
    """See the module's text."""
    client_id, client_secret = os.environ["SERVICE_CLIENT_ID"], os.environ["SERVICE_CLIENT_SECRET"]
    provider = ClientCredentialsOAuthProvider(url, MemoryStorage(), client_id, client_secret, method)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=30.0, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        called = await client.call_tool("acme_whoami", {})
    report(tools=[tool.name for tool in listed.tools], called=called.structured_content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
