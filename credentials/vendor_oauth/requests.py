"""Requests to a vendor's authorization server: registration, the address of a sign-in, tokens, revocation."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from credentials.vendor_oauth import answers
from credentials.vendor_oauth.accounts import account_in, claims_of
from credentials.vendor_oauth.answers import BASIC, NONE, POST, Ask, AuthorizationServer, Refused, Tokens
from credentials.vendor_oauth.discovery import Discovered
from gateway.lib.guarded_client import Response
from gateway.lib.sentences import sentence

CLIENT_NAME = "MCP Gateway"


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """The gateway's identity at one authorization server. `auth_method`: a name of RFC 7591."""

    client_id: str
    secret: str = field(default="", repr=False)
    auth_method: str = NONE
    # Unix time; None: never.
    secret_expires_at_s: float | None = None


def preferred_method(server: AuthorizationServer, *, has_secret: bool) -> str:
    """How a client proves itself, of what the server offers."""
    if not has_secret:
        return NONE
    # In the server's order: some that list both take only the first one everywhere.
    return next((each for each in server.auth_methods if each in (BASIC, POST)), BASIC)


def register(server: AuthorizationServer, *, redirect_uri: str, client_uri: str, ask: Ask) -> OAuthClient:
    """A new client at the server. Raises: VendorOAuthFault. Spec: RFC 7591"""
    if not server.registration_endpoint:
        raise answers.VendorOAuthFault(
            sentence("The vendor requires a client that is registered manually. An operator can add it to the catalog.")
        )
    is_public = NONE in server.auth_methods and not {BASIC, POST} & set(server.auth_methods)
    method = preferred_method(server, has_secret=not is_public)
    wanted = {
        "client_name": CLIENT_NAME,
        "client_uri": client_uri,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "web",
    }
    response = ask(
        "POST",
        server.registration_endpoint,
        headers={"Content-Type": "application/json", "Accept": "application/json"},
        body=msgspec.json.encode(wanted),
    )
    client_id, secret, method, ends = answers.registered_client(response)
    return OAuthClient(client_id, secret, method, ends)


def authorization_url(
    found: Discovered, client_id: str, *, redirect_uri: str, state: str, code_challenge: str, scopes: str
) -> str:
    """The address that the person's browser is sent to."""
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": code_challenge,
        "code_challenge_method": "S256",
        "resource": found.resource,
    }
    if scopes:
        query["scope"] = scopes
    if "offline_access" in scopes.split():
        query["prompt"] = "consent"  # OpenID Connect Core 11
    endpoint = found.server.authorization_endpoint
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"


def exchange_code(
    token_endpoint: str, client: OAuthClient, *, code: str, verifier: str, redirect_uri: str, resource: str, ask: Ask
) -> Tokens | Refused:
    """Raises: VendorOAuthFault."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        "resource": resource,
    }
    return answers.tokens(_send(token_endpoint, client, form, ask))


def refresh(token_endpoint: str, client: OAuthClient, *, token: str, resource: str, ask: Ask) -> Tokens | Refused:
    """Raises: VendorOAuthFault."""
    form = {"grant_type": "refresh_token", "refresh_token": token, "resource": resource}
    return answers.tokens(_send(token_endpoint, client, form, ask))


def account_of(found: Tokens, *, issuer: str, client_id: str, userinfo_endpoint: str, scopes: str, ask: Ask) -> str:
    """The account at the vendor, if the vendor tells; a vendor that does not answer is no fault."""
    secrets = (found.access_token, found.refresh_token, found.id_token)
    claims = claims_of(found.id_token, issuer=issuer, client_id=client_id)
    known = account_in(claims, secrets=secrets) or found.account
    if known or not userinfo_endpoint or "openid" not in scopes.split():
        return known
    headers = {"Accept": "application/json", "Authorization": f"Bearer {found.access_token}"}
    try:
        said = answers.json_document(ask("GET", userinfo_endpoint, headers=headers))
    except answers.VendorOAuthFault:
        return ""
    # Of another person: OpenID Connect Core 5.3.2.
    is_theirs = "sub" not in claims or claims["sub"] == said.get("sub")
    return account_in(said, secrets=secrets) if is_theirs else ""


def revoke(revocation_endpoint: str, client: OAuthClient, *, token: str, hint: str, ask: Ask) -> bool:
    """Whether the server took it. Raises: VendorOAuthFault. Spec: RFC 7009"""
    return _send(revocation_endpoint, client, {"token": token, "token_type_hint": hint}, ask).status == 200


def _send(url: str, client: OAuthClient, form: dict[str, str], ask: Ask) -> Response:
    headers = {"Accept": "application/json"}
    # Servers in use look the client up by the form, also where the header proves it.
    form = {**form, "client_id": client.client_id}
    if client.auth_method == BASIC:
        # RFC 6749 2.3.1: each part is form-encoded before it is joined.
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif client.auth_method == POST:
        form["client_secret"] = client.secret
    return ask("POST", url, headers=headers, form=form)
