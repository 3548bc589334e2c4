"""The official Python SDK 2.x signs in, lists the tools and calls one: python -m tests.clients.python.sdk_2 MCP_URL"""

from __future__ import annotations

import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from tests.clients.python.person import REDIRECT_URI, Answer, MemoryStorage, report


async def main(url: str) -> None:
    """See the module's text."""
    answer, storage = Answer(), MemoryStorage()

    async def answered() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=answer.field("code") or "", state=answer.field("state"), iss=answer.field("iss")
        )

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(REDIRECT_URI)], client_name="Python SDK 2")
    provider = OAuthClientProvider(url, metadata, storage, redirect_handler=answer.ask, callback_handler=answered)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=30.0, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        called = await client.call_tool("acme_whoami", {})
        version = client.protocol_version
    report(
        tools=[tool.name for tool in listed.tools],
        called=called.structured_content,
        scope=storage.tokens.scope,
        version=version,
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
