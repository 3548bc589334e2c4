"""The official Python SDK 2.x with its provider for identity assertions (SEP-990): lists the tools and calls one.

python -m tests.clients.python.assertion_sdk_2 MCP_URL ISSUER TOKEN_URL, where TOKEN_URL exchanges ID_TOKEN for an
assertion; the client's id and secret at the gateway are SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET.
"""

from __future__ import annotations

import asyncio
import os
import sys

import httpx2
from mcp import Client
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from tests.clients.python.person import MemoryStorage, report


async def main(url: str, issuer: str, token_url: str) -> None:
    """See the module's text."""

    async def assertion(audience: str, resource: str) -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "subject_token": os.environ["ID_TOKEN"],
            "audience": audience,
            "resource": resource,
            "scope": "mcp:all",
        }
        async with httpx2.AsyncClient(timeout=30.0, trust_env=False) as http:
            answer = await http.post(token_url, data=form)
            answer.raise_for_status()
            return str(answer.json()["access_token"])

    provider = IdentityAssertionOAuthProvider(
        url,
        MemoryStorage(),
        os.environ["SERVICE_CLIENT_ID"],
        os.environ["SERVICE_CLIENT_SECRET"],
        issuer,
        assertion,
    )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=30.0, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        called = await client.call_tool("acme_whoami", {})
    report(tools=[tool.name for tool in listed.tools], called=called.structured_content)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
