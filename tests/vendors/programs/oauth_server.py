"""A vendor with the Python SDK's authorization server: `oauth_server.py PORT`.

It grants every sign-in at once. Refresh tokens rotate, and one that is used twice ends its whole family. `/_control`
sets lifetimes and faults, `/_stats` counts.
"""

import asyncio
import secrets
import sys
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.fastmcp import FastMCP
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

PORT = int(sys.argv[1])
ORIGIN = f"http://127.0.0.1:{PORT}"


@dataclass
class Control:
    lifetime_s: int = 3600
    refresh_pause_s: float = 0.0
    # "500", "429", "garbage", "once": one refusal, or "echo": a refusal that repeats what was sent
    refresh_fault: str = ""
    grace: bool = False  # a refresh token that was used may be used again, and ends nothing
    scopes: str = ""  # granted instead of those asked for
    wanted: str = "write"  # named by a refusal for want of a scope
    refused: str = '"name":"write"'  # what the requests contain that need the scope "write"


@dataclass
class Family:
    """The tokens of one sign-in."""

    scopes: list[str]
    client_id: str
    resource: str
    is_ended: bool = False


@dataclass
class State:
    control: Control = field(default_factory=Control)
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, tuple[Family, float]] = field(default_factory=dict)
    refresh: dict[str, Family] = field(default_factory=dict)
    used: dict[str, Family] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)

    def count(self, name: str) -> None:
        self.stats[name] = self.stats.get(name, 0) + 1


STATE = State()


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return STATE.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        STATE.count("registered")
        STATE.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        STATE.count("authorized")
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=STATE.control.scopes.split() or params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        STATE.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return STATE.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del STATE.codes[authorization_code.code]
        STATE.count("exchanged")
        return _issue(Family(authorization_code.scopes, client.client_id, authorization_code.resource or ""))

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        STATE.count("refresh_asked")
        if refresh_token in STATE.used and STATE.control.grace:
            STATE.count("repeated")
            STATE.refresh[refresh_token] = STATE.used.pop(refresh_token)
        if refresh_token in STATE.used:
            STATE.count("replayed")
            STATE.used[refresh_token].is_ended = True
        family = STATE.refresh.get(refresh_token)
        if family is None or family.is_ended:
            return None
        return RefreshToken(token=refresh_token, client_id=family.client_id, scopes=family.scopes)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        family = STATE.refresh.pop(refresh_token.token, None)
        if family is None:
            raise TokenError("invalid_grant")
        STATE.used[refresh_token.token] = family
        await asyncio.sleep(STATE.control.refresh_pause_s)
        STATE.count("refreshed")
        return _issue(family)

    async def load_access_token(self, token: str) -> AccessToken | None:
        family, ends = STATE.access.get(token, (None, 0.0))
        if family is None or family.is_ended or ends <= time.time():
            STATE.count("unauthorized")
            return None
        return AccessToken(token=token, client_id=family.client_id, scopes=family.scopes, resource=family.resource)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        STATE.count("revoked")
        family = STATE.refresh.get(token.token) or STATE.access.get(token.token, (None,))[0]
        if family is not None and not family.is_ended:
            STATE.count("grants_ended")
            family.is_ended = True


def _issue(family: Family) -> OAuthToken:
    access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
    lifetime_s = STATE.control.lifetime_s
    STATE.access[access] = (family, time.time() + lifetime_s)
    STATE.refresh[refresh] = family
    return OAuthToken(
        access_token=access,
        token_type="Bearer",
        expires_in=lifetime_s,
        scope=" ".join(family.scopes),
        refresh_token=refresh,
    )


server = FastMCP(
    "oauth-vendor",
    host="127.0.0.1",
    port=PORT,
    log_level="WARNING",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(ORIGIN),
        resource_server_url=AnyHttpUrl(f"{ORIGIN}/mcp"),
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["read", "write"], default_scopes=["read", "write"]
        ),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["read"],
    ),
)


@server.tool(description="The same words.")
def echo(words: str) -> str:
    return words


@server.tool(description="The scopes of the caller's token.")
def scopes() -> str:
    token = get_access_token()
    return " ".join(token.scopes) if token else ""


class StepUp:
    """Refuses calls of `write` for tokens without that scope, as vendors in use do: with 403 and the scopes."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        family, _ = STATE.access.get(request.headers.get("authorization", "").removeprefix("Bearer "), (None, 0.0))
        if (
            family is not None
            and STATE.control.refused.encode() in body.replace(b" ", b"")
            and "write" not in family.scopes
        ):
            challenge = f'Bearer error="insufficient_scope", scope="{STATE.control.wanted}", realm="vendor"'
            await Response("", 403, {"WWW-Authenticate": challenge})(scope, receive, send)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Any:
            return next(messages, None) or await receive()

        await self._app(scope, replay, send)


@server.tool(description="Needs the scope write.")
def write() -> str:
    return "written"


@server.custom_route("/_control", methods=["POST"])
async def control(request: Request) -> Response:
    for name, value in (await request.json()).items():
        setattr(STATE.control, name, value)
    return JSONResponse({})


@server.custom_route("/_stats", methods=["GET"])
async def stats(request: Request) -> Response:
    return JSONResponse(STATE.stats)


@server.custom_route("/_end_all", methods=["POST"])
async def end_all(request: Request) -> Response:
    """The vendor forgets every sign-in."""
    for family in [*STATE.refresh.values(), *(each for each, _ in STATE.access.values())]:
        family.is_ended = True
    return JSONResponse({})


@server.custom_route("/_end_access", methods=["POST"])
async def end_access(request: Request) -> Response:
    """The vendor forgets every access token."""
    STATE.access.clear()
    return JSONResponse({})


class Faults:
    """Answers the token endpoint's refreshes with the fault that is set."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        fault = STATE.control.refresh_fault
        if not (fault and scope["type"] == "http" and scope["path"] == "/token"):
            await self._app(scope, receive, send)
            return
        STATE.count("faulty")
        if fault == "once":
            STATE.control.refresh_fault = ""
            answer: Response = JSONResponse({"error": "invalid_grant"}, 400)
        elif fault == "echo":
            form = parse_qs((await Request(scope, receive).body()).decode())
            sent = form.get("refresh_token", form.get("code", [""]))[0]
            answer = JSONResponse({"error": sent[:60], "error_description": sent}, 400)
        else:
            answer = Response("{]", 200) if fault == "garbage" else Response("", int(fault))
        await answer(scope, receive, send)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(StepUp(Faults(server.streamable_http_app())), host="127.0.0.1", port=PORT, log_level="warning")
