"""ASGI middleware in front of the demonstration vendor's tools: API key check and request counters."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from demo.vendor_tenants import API_KEY
from demo.vendor_tools import FINGERPRINT_KEY

OPEN_PATHS = frozenset({"/healthz", "/_stats"})
MAX_COUNTED_NAMES = 64
BROKEN_OFF = "(broken off)"


class Counters:
    """Requests per method and tool since the start."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.tools: Counter[str] = Counter()
        self.unauthorized = 0

    async def observe(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """MCP server middleware that counts each message."""
        _count(self.methods, ctx.method)
        if ctx.method == "tools/call":
            _count(self.tools, str((ctx.params or {}).get("name", "")))
        try:
            return await call_next(ctx)
        except asyncio.CancelledError:  # told to give up, or left by its caller
            _count(self.methods, BROKEN_OFF)
            raise

    def snapshot(self) -> dict[str, object]:
        """{"methods": {name: count}, "tools": {name: count}, "unauthorized": count}."""
        return {"methods": dict(self.methods), "tools": dict(self.tools), "unauthorized": self.unauthorized}


def _count(table: Counter[str], name: str) -> None:
    # Names come from callers: past MAX_COUNTED_NAMES they share one entry, so that a caller cannot fill the memory.
    known = name in table or len(table) < MAX_COUNTED_NAMES
    table[name[:100] if known else "(other)"] += 1


class ApiKeyGate:
    """Answers 401 without exactly one well-formed X-Api-Key, except on OPEN_PATHS."""

    def __init__(self, app: ASGIApp, *, fingerprint: Callable[[str], str], counters: Counters) -> None:
        self._app = app
        self._fingerprint = fingerprint
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        # Only the key's fingerprint goes on in the scope; each session belongs to one fingerprint.
        keys = Headers(scope=scope).getlist("x-api-key")
        if len(keys) != 1 or not API_KEY.fullmatch(keys[0]):
            self._counters.unauthorized += 1
            body = {"error": "unauthorized", "message": "Send an Acme API key in the header X-Api-Key."}
            refusal = JSONResponse(body, status_code=401, headers={"WWW-Authenticate": 'ApiKey header="X-Api-Key"'})
            await refusal(scope, receive, send)
            return
        tenant = self._fingerprint(keys[0])
        # The MCP server ties a session to this user, so no other key can use it.
        owner = AuthenticatedUser(AccessToken(token=tenant, client_id=tenant, scopes=[]))
        await self._app({**scope, FINGERPRINT_KEY: tenant, "user": owner}, receive, send)
