"""Finds a vendor's authorization server: from the 401 of its MCP address, and from well-known addresses.

Spec: RFC 8414, 9728 · MCP authorization
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import msgspec

from credentials.vendor_oauth import answers
from credentials.vendor_oauth.answers import Ask, AuthorizationServer, Challenge, ProtectedResource, VendorOAuthFault
from gateway.lib.guarded_client import Response
from gateway.lib.sentences import sentence

OFFLINE = "offline_access"
# Parameters of a sign-in: a server would take the first of two.
OURS = frozenset(
    {
        *("response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method"),
        *("resource", "scope", "prompt", "request", "request_uri", "response_mode"),
    }
)
_ENDPOINT = re.compile(r"[!\x24-\x5b\x5d-~]+")  # no fragment, quote, backslash, space or control character
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,500}")
_VERSION = "2025-11-25"
_INITIALIZE = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": _VERSION,
            "capabilities": {},
            "clientInfo": {"name": "mcp-gateway", "version": "1"},
        },
    }
)
_LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
_JSON = {"Accept": "application/json"}
_MCP = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Discovered:
    """`resource`: the value of the resource indicator. `scopes`: those to ask for; empty: none."""

    server: AuthorizationServer
    resource: str
    scopes: tuple[str, ...]


def discover(
    mcp_url: str, *, ask: Ask, check: Callable[[str], None], issuer: str = "", scopes: tuple[str, ...] = ()
) -> Discovered:
    """`issuer`: the only one to accept. `scopes`: those of the catalog, before all others. `check` raises
    VendorOAuthFault for an address that neither the gateway nor a person may be sent to. Raises: VendorOAuthFault."""
    asked = _challenge(mcp_url, ask)
    resource = _protected_resource(mcp_url, asked.resource_metadata, ask)
    if issuer and resource is not None and issuer not in resource.authorization_servers:
        raise VendorOAuthFault(sentence("The vendor’s metadata and the catalog name different authorization servers."))
    # Servers of the first revision say nothing of their resource: they are their own issuer.
    named = resource.authorization_servers[0] if resource is not None else _origin(mcp_url)
    server = _authorization_server(issuer or named, ask)
    for url in (
        server.authorization_endpoint,
        server.token_endpoint,
        server.registration_endpoint,
        server.revocation_endpoint,
        server.userinfo_endpoint,
    ):
        if url:
            _check_form(url)
            check(url)
    found = scopes or tuple(asked.scope.split()) or (resource.scopes if resource else ())
    if OFFLINE in server.scopes and OFFLINE not in found and found:
        found = (*found, OFFLINE)
    return Discovered(server, resource.resource if resource else _without_query(mcp_url), found)


def _challenge(mcp_url: str, ask: Ask) -> Challenge:
    """Of the first request that needs a token: some vendors let anybody open a session. Raises: VendorOAuthFault."""
    opened = ask("POST", mcp_url, headers=_MCP, body=_INITIALIZE)
    if opened.status == 401:
        return answers.challenge(opened)
    session = opened.headers.get("Mcp-Session-Id", "")
    is_usable = _SESSION_ID.fullmatch(session) is not None
    headers = {**_MCP, "MCP-Protocol-Version": _VERSION, **({"Mcp-Session-Id": session} if is_usable else {})}
    try:
        return answers.challenge(ask("POST", mcp_url, headers=headers, body=_LIST))
    except VendorOAuthFault:
        return Challenge()  # a long list that anybody may read, for one; the well-known addresses remain


def _check_form(endpoint: str) -> None:
    """Refuses what parsers and browsers read differently, and an address that answers in place of ours.

    Raises: VendorOAuthFault. Spec: RFC 6749 3.1
    """
    names = {name for name, _ in parse_qsl(urlsplit(endpoint).query, keep_blank_values=True)}
    if _ENDPOINT.fullmatch(endpoint) is None or names & OURS:
        raise VendorOAuthFault(sentence("The vendor’s metadata leads to an address that isn’t allowed."))


def check_not_of_others(server: AuthorizationServer, others: Iterable[str]) -> None:
    """Refuses a server that sends people to the sign-in of another one, whose code it would then get.

    `others`: addresses of other vendors and of their servers. Servers that name themselves in their answers need no
    such check. Raises: VendorOAuthFault. Spec: RFC 9700 4.4
    """
    sign_in = _origin(server.authorization_endpoint)
    if server.names_issuer or sign_in == _origin(server.issuer):
        return
    if sign_in in map(_origin, others):
        raise VendorOAuthFault(sentence("The vendor’s metadata leads to the sign-in of another vendor."))


def _protected_resource(mcp_url: str, told: str, ask: Ask) -> ProtectedResource | None:
    if told:
        return answers.protected_resource(ask("GET", told, headers=_JSON), mcp_url)
    path = urlsplit(mcp_url).path.rstrip("/")
    well_known = f"{_origin(mcp_url)}/.well-known/oauth-protected-resource"
    response = _first_found([f"{well_known}{path}", well_known] if path else [well_known], ask)
    return None if response is None else answers.protected_resource(response, mcp_url)


def _authorization_server(issuer: str, ask: Ask) -> AuthorizationServer:
    response = _first_found(list(_metadata_addresses(issuer)), ask)
    if response is None:
        raise VendorOAuthFault(sentence("The authorization server has no metadata."))
    return answers.authorization_server(response, issuer)


def _metadata_addresses(issuer: str) -> Iterator[str]:
    origin, path = _origin(issuer), urlsplit(issuer).path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}/.well-known/openid-configuration{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def _first_found(addresses: list[str], ask: Ask) -> Response | None:
    for address in addresses:
        response = ask("GET", address, headers=_JSON)
        # Some answer 401 or 405 at addresses that they do not have.
        if response.status not in (401, 403, 404, 405, 406):
            return response
    return None


def _without_query(url: str) -> str:
    """As a resource is named. Spec: RFC 8707 2"""
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
