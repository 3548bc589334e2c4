"""The official Python SDK 1.x signs in, lists the tools and calls one: python -m tests.clients.python.sdk_1 MCP_URL"""

from __future__ import annotations

import asyncio
import sys

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from tests.clients.python.person import REDIRECT_URI, Answer, MemoryStorage, report


async def main(url: str) -> None:
    """See the module's text."""
    answer, storage = Answer(), MemoryStorage()

    async def answered() -> tuple[str, str | None]:
        return answer.field("code") or "", answer.field("state")

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(REDIRECT_URI)], client_name="Python SDK 1")
    provider = OAuthClientProvider(url, metadata, storage, redirect_handler=answer.ask, callback_handler=answered)
    async with (
        streamablehttp_client(url, auth=provider) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        hello = await session.initialize()
        listed = await session.list_tools()
        called = await session.call_tool("acme_whoami", {})
    report(
        tools=[tool.name for tool in listed.tools],
        called=called.structuredContent,
        scope=storage.tokens.scope,
        version=hello.protocolVersion,
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
