"""What stands before the demonstration vendor's tools: the API key, and counters of what was asked."""

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


class Counters:
    """How often each method and tool was asked for since the start. Names are the caller's: past a bound they share
    one entry, so that a caller cannot fill the memory."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.tools: Counter[str] = Counter()
        self.unauthorized = 0

    async def observe(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Counts one message, then lets it through: a middleware of the MCP server."""
        _count(self.methods, ctx.method)
        if ctx.method == "tools/call":
            _count(self.tools, str((ctx.params or {}).get("name", "")))
        return await call_next(ctx)

    def snapshot(self) -> dict[str, object]:
        """{"methods": {name: count}, "tools": {name: count}, "unauthorized": count}."""
        return {"methods": dict(self.methods), "tools": dict(self.tools), "unauthorized": self.unauthorized}


def _count(table: Counter[str], name: str) -> None:
    known = name in table or len(table) < MAX_COUNTED_NAMES
    table[name[:100] if known else "(other)"] += 1


class ApiKeyGate:
    """An ASGI middleware: every path but the open ones needs a well-formed X-Api-Key, else 401.

    The key's fingerprint, never the key, goes on in the scope; sessions belong to the fingerprint that opened them.
    """

    def __init__(self, app: ASGIApp, *, fingerprint: Callable[[str], str], counters: Counters) -> None:
        self._app = app
        self._fingerprint = fingerprint
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers 401."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        keys = Headers(scope=scope).getlist("x-api-key")
        if len(keys) != 1 or not API_KEY.fullmatch(keys[0]):
            self._counters.unauthorized += 1
            body = {"error": "unauthorized", "message": "Send an Acme API key in the header X-Api-Key."}
            refusal = JSONResponse(body, status_code=401, headers={"WWW-Authenticate": 'ApiKey header="X-Api-Key"'})
            await refusal(scope, receive, send)
            return
        tenant = self._fingerprint(keys[0])
        owner = AuthenticatedUser(AccessToken(token=tenant, client_id=tenant, scopes=[]))
        await self._app({**scope, FINGERPRINT_KEY: tenant, "user": owner}, receive, send)
