"""The demonstration vendor "Acme RMM": a real MCP server with an API key, for `make run` and the tests.

    python -m demo.vendor_server --data var/vendor

Streamable HTTP at /mcp. Any key that starts with demo- and has 12 or more characters is a tenant of its own.
"""

import argparse
import asyncio
import ipaddress
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from demo.listening import StartError, add_listen_arguments, fail, require_loopback, serve
from demo.vendor_gate import ApiKeyGate, Counters
from demo.vendor_tenants import TenantStore
from demo.vendor_tools import AcmeTools, register_tools

NAME = "Demo vendor server"
# Open MCP sessions.
MAX_SESSIONS = 1000


def _utc_now() -> datetime:
    return datetime.now(UTC)


def create_app(
    *,
    data: Path,
    host: str = "127.0.0.1",
    clock: Callable[[], datetime] = _utc_now,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Starlette:
    """The ASGI application. `clock` returns an aware UTC time. Raises: StartError when `data` cannot be used."""
    # On a loopback `host` the Host header must name loopback too (DNS rebinding).
    tenants = TenantStore(data, clock)
    counters = Counters()
    server: MCPServer = MCPServer(
        name="acme-rmm",
        title="Acme RMM (demonstration)",
        description="Devices and tickets that exist only for demonstration.",
        instructions="Look devices up with acme_list_devices or acme_search before you change anything.",
        version="1.0.0",
        log_level="WARNING",
        middleware=[counters.observe],
    )
    register_tools(server, AcmeTools(tenants, clock, pause))

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def stats(request: Request) -> Response:
        # Counters reveal what all tenants ask for.
        if not _is_from_loopback(request):
            return JSONResponse({"error": "not_found"}, status_code=404)
        body = {**counters.snapshot(), "tenants": len(tenants)}
        return JSONResponse(body, headers={"Cache-Control": "no-store"})

    app = server.streamable_http_app(host=host, max_sessions=MAX_SESSIONS)
    app.add_route("/healthz", health)
    app.add_route("/_stats", stats)
    app.add_middleware(ApiKeyGate, fingerprint=tenants.fingerprint, counters=counters)
    return app


def _is_from_loopback(request: Request) -> bool:
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.vendor_server", description=__doc__)
    add_listen_arguments(parser, port=9100)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the tenants are kept")
    options = parser.parse_args(arguments)
    try:
        require_loopback(options.host, allow_remote=options.allow_remote)
        app = create_app(data=options.data, host=options.host)
        serve(app, name=NAME, host=options.host, port=options.port)
    except StartError as error:
        return fail(NAME, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
