"""Answers of authorization servers and vendors, parsed and checked.

Spec: contract §8 · RFC 6749, 6750, 7591, 8414, 8707, 9207, 9728
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from credentials.bearer_challenge import parameters, scopes_in
from credentials.token_audience import covers
from credentials.vendor_oauth.accounts import account_in
from gateway.lib import strict_json
from gateway.lib.guarded_client import Response
from gateway.lib.sentences import sentence

JSON_DEPTH = 16
MAX_TOKEN_CHARACTERS = 16 * 1024
MAX_LIFETIME_S = 10 * 365 * 86_400
_TOKEN = re.compile(r"[\x21-\x7e]+")
_ERROR_CODE = re.compile(r"[A-Za-z0-9_.:/-]{1,60}")
# The codes that are repeated; another one could hold anything, also the token that was sent.
_ERROR_CODES = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"),
        *("invalid_scope", "invalid_target", "access_denied", "server_error", "temporarily_unavailable"),
        *("insufficient_scope", "invalid_token", "interaction_required", "login_required", "consent_required"),
    }
)
UNKNOWN_ERROR = "unknown_error"
BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"
AUTH_METHODS = (BASIC, POST, NONE)


class Ask(Protocol):
    """Sends one request through the guarded client. Raises: VendorOAuthFault."""

    def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        form: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Response: ...


class VendorOAuthFault(Exception):
    """The sign-in at a vendor cannot go on. `reason`: a sentence that repeats nothing of what was received."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Challenge:
    """Of a 401: where the resource's metadata is, and the scopes it asks for; "" for what it does not say."""

    resource_metadata: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    resource: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    auth_methods: tuple[str, ...]
    scopes: tuple[str, ...]
    takes_metadata_documents: bool
    # Its answers name the issuer. Spec: RFC 9207
    names_issuer: bool
    userinfo_endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """`expires_in_s` None: the server did not say. `scopes` None: those that were asked for."""

    access_token: str
    refresh_token: str
    expires_in_s: float | None
    scopes: str | None
    id_token: str = ""
    # At the vendor, if the answer itself names it.
    account: str = ""

    def __repr__(self) -> str:
        return "Tokens(…)"


@dataclass(frozen=True, slots=True)
class Refused:
    """The server's error code, such as `invalid_grant`; UNKNOWN_ERROR for one of its own."""

    code: str


def challenge(response: Response) -> Challenge:
    if response.status != 401:
        return Challenge()
    found = parameters(response.headers.get("WWW-Authenticate", ""))
    return Challenge(found.get("resource_metadata", ""), scopes_in(found.get("scope")) or "")


def protected_resource(response: Response, mcp_url: str) -> ProtectedResource:
    """Raises: VendorOAuthFault for metadata of another resource."""
    document = json_document(response)
    resource, servers = _text(document, "resource"), _texts(document, "authorization_servers")
    if not covers(resource, mcp_url):
        raise VendorOAuthFault(sentence("The vendor’s metadata is about another address."))
    if not servers:
        raise VendorOAuthFault(sentence("The vendor’s metadata names no authorization server."))
    return ProtectedResource(resource, servers, _texts(document, "scopes_supported"))


def authorization_server(response: Response, issuer: str) -> AuthorizationServer:
    """Raises: VendorOAuthFault for another issuer's metadata, and for a server without PKCE."""
    document = json_document(response)
    if _text(document, "issuer") != issuer:  # as strings, without normalization: RFC 8414 3.3
        raise VendorOAuthFault(sentence("The authorization server’s metadata names another issuer."))
    if "S256" not in _texts(document, "code_challenge_methods_supported"):
        raise VendorOAuthFault(sentence("The authorization server doesn’t support PKCE with S256."))
    authorize, token = (_text(document, f"{name}_endpoint") for name in ("authorization", "token"))
    if not authorize or not token:
        raise VendorOAuthFault(sentence("The authorization server’s metadata is incomplete."))
    return AuthorizationServer(
        issuer,
        authorize,
        token,
        registration_endpoint=_text(document, "registration_endpoint"),
        revocation_endpoint=_text(document, "revocation_endpoint"),
        # RFC 8414: without the member it is basic.
        auth_methods=_texts(document, "token_endpoint_auth_methods_supported") or (BASIC,),
        scopes=_texts(document, "scopes_supported"),
        takes_metadata_documents=document.get("client_id_metadata_document_supported") is True,
        names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        userinfo_endpoint=_text(document, "userinfo_endpoint"),
    )


def tokens(response: Response) -> Tokens | Refused:
    """Raises: VendorOAuthFault for an answer that says neither yes nor no."""
    if response.status in (400, 401):
        code = json_document(response, status=response.status).get("error")
        if isinstance(code, str) and _ERROR_CODE.fullmatch(code):
            return Refused(code if code in _ERROR_CODES else UNKNOWN_ERROR)
        raise VendorOAuthFault(sentence("The authorization server’s response can’t be read."))
    document = json_document(response)
    access, kind = document.get("access_token"), document.get("token_type")
    if not _is_token(access) or not isinstance(kind, str) or kind.lower() != "bearer":
        raise VendorOAuthFault(sentence("The authorization server’s response contains no usable token."))
    refresh = document.get("refresh_token")
    if refresh is not None and refresh != "" and not _is_token(refresh):
        raise VendorOAuthFault(sentence("The authorization server’s response contains no usable token."))
    lifetime, scopes = document.get("expires_in"), document.get("scope")
    return Tokens(
        str(access),
        str(refresh or ""),
        _lifetime_s(lifetime),
        _granted(scopes, {str(access), str(refresh or "")}),
        str(document["id_token"]) if _is_token(document.get("id_token")) else "",
        account_in(document, secrets=(str(access), str(refresh or ""))),
    )


def registered_client(response: Response) -> tuple[str, str, str, float | None]:
    """(client id, secret, authentication method, Unix time at which the secret ends). Raises: VendorOAuthFault."""
    document = json_document(response, status=201 if response.status == 201 else 200)
    client_id, secret = document.get("client_id"), document.get("client_secret") or ""
    method = document.get("token_endpoint_auth_method") or (BASIC if secret else NONE)
    if not _is_token(client_id) or len(str(client_id)) > 2_000 or (secret and not _is_token(secret)):
        raise VendorOAuthFault(sentence("The authorization server’s registration can’t be read."))
    if method not in AUTH_METHODS or (method != NONE and not secret):
        raise VendorOAuthFault(sentence("The authorization server asks for a proof that isn’t supported."))
    end = document.get("client_secret_expires_at")
    has_end = isinstance(end, int | float) and not isinstance(end, bool) and 0 < end < 1e11
    return str(client_id), str(secret), str(method), float(end) if has_end and isinstance(end, int | float) else None


def _granted(scopes: object, secrets: set[str]) -> str | None:
    read = scopes_in(scopes)
    # They are shown: a server that repeats a token here is not believed.
    return None if read is None or secrets & set(read.split()) else read


def _lifetime_s(value: object) -> float | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 12:
        value = int(value)  # seen from servers in use
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_LIFETIME_S:
        return None
    return float(value)


def _is_token(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TOKEN_CHARACTERS and _TOKEN.fullmatch(value) is not None


def json_document(response: Response, *, status: int = 200) -> dict[str, Any]:
    if response.status != status:
        raise VendorOAuthFault(
            sentence("The authorization server responded with status %(status)s.", status=response.status)
        )
    try:
        document = strict_json.loads(response.body, max_depth=JSON_DEPTH)
    except strict_json.StrictJSONError:
        document = None
    if not isinstance(document, dict):
        raise VendorOAuthFault(sentence("The authorization server’s response can’t be read."))
    return document


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name, "")
    return value if isinstance(value, str) and len(value) <= 2_000 else ""


def _texts(document: dict[str, Any], name: str) -> tuple[str, ...]:
    value = document.get(name)
    if not isinstance(value, list):
        return ()
    return tuple(each for each in value[:200] if isinstance(each, str) and 0 < len(each) <= 2_000)
