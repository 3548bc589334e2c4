"""Pure: validation of requests from the one client and from people who sign in."""

import base64
import hmac
import re
import unicodedata
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from demo.identity_grants import CHALLENGE, Person

CALLBACK_PATH = "/oidc/callback/"
# Bounds of a query or form.
MAX_FIELDS = 30
MAX_VALUE_CHARS = 2048
MAX_NAME_CHARS = 80
# RFC 5321 §4.5.3.1.3, without the angle brackets.
MAX_EMAIL_CHARS = 254

_LOCAL_PART = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_DOMAIN_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# Characters that form-encoding leaves unchanged: clients differ in whether they encode the Basic header.
_CLIENT_TEXT = re.compile(r"[A-Za-z0-9._~-]+")


class PageError(Exception):
    """The client or redirect address is not trusted: answered with a page, never with a redirect."""


class OAuthError(Exception):
    """The request is refused by a redirect or JSON error; `code` is an OAuth error code."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description)
        self.code = code


class ClientAuthError(Exception):
    """Client authentication failed. `used_basic`: the answer needs WWW-Authenticate."""

    def __init__(self, description: str, *, used_basic: bool) -> None:
        super().__init__(description)
        self.used_basic = used_basic


@dataclass(frozen=True, slots=True)
class Registration:
    """The one client and its redirect origins. Raises: ValueError for an invalid id, secret or origin."""

    client_id: str
    client_secret: str = field(repr=False)
    redirect_origins: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _CLIENT_TEXT.fullmatch(self.client_id):
            raise ValueError("the client id may hold letters, digits and . _ ~ - only")
        if len(self.client_secret) < 16 or not _CLIENT_TEXT.fullmatch(self.client_secret):
            raise ValueError("the client secret (--client-secret-env) needs 16 or more letters, digits and . _ ~ -")
        if not self.redirect_origins:
            raise ValueError("at least one redirect origin is needed")
        for origin in self.redirect_origins:
            if not is_origin(origin):
                raise ValueError(f"{origin!r} is not an origin such as http://127.0.0.1:8000")

    def allows_redirect(self, uri: str) -> bool:
        """Whether `uri` equals the callback of a registered origin."""
        return uri in {f"{origin}{CALLBACK_PATH}" for origin in self.redirect_origins}

    def allows_after_sign_out(self, uri: str) -> bool:
        """Whether `uri` is on a registered origin."""
        if not uri.isascii() or not uri.isprintable() or " " in uri or "\\" in uri:
            return False  # browsers parse these differently than urlsplit
        # Compare parsed parts: a prefix would match https://origin.attacker.example.
        parts = urlsplit(uri)
        return f"{parts.scheme}://{parts.netloc}" in self.redirect_origins and not parts.fragment

    def proves(self, client_id: str, client_secret: str) -> bool:
        """Constant-time comparison of id and secret."""
        # Both comparisons always run.
        same_id = hmac.compare_digest(client_id.encode(), self.client_id.encode())
        return hmac.compare_digest(client_secret.encode(), self.client_secret.encode()) and same_id


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A validated authorization request. `login_hint` prefills the form; `is_in_outage` is prompt=none."""

    client_id: str
    redirect_uri: str
    state: str | None
    nonce: str | None
    scope: str
    challenge: str
    login_hint: str
    is_silent: bool


def is_origin(text: str) -> bool:
    """Whether `text` is exactly scheme://host[:port] with http or https."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    written = f"{parts.scheme}://{parts.netloc}"
    usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc and port != 0
    return usable and written == text and re.fullmatch(r"[A-Za-z0-9.:\[\]-]+", parts.netloc) is not None


def parse_fields(encoded: str) -> dict[str, str]:
    """Fields of a query or form; blank values count as absent (RFC 6749 §3.1).

    Raises: ValueError for a repeated name, too many fields or a value that is too long.
    """
    pairs = parse_qsl(encoded, max_num_fields=MAX_FIELDS, errors="strict")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a parameter is given twice")
    if any(len(value) > MAX_VALUE_CHARS for value in fields.values()):
        raise ValueError("a parameter is too long")
    return fields


def find_redirect(fields: dict[str, str], registration: Registration) -> str:
    """The validated redirect URI. Raises: PageError when client or address is not the registered one."""
    if fields.get("client_id") != registration.client_id:
        raise PageError("The application that sent you here is not registered with this provider (client_id).")
    redirect_uri = fields.get("redirect_uri", "")
    if not registration.allows_redirect(redirect_uri):
        raise PageError("The application asked to send you to an address it has not registered (redirect_uri).")
    return redirect_uri


def check_authorization(fields: dict[str, str], redirect_uri: str) -> AuthorizationRequest:
    """The validated request. Raises: OAuthError."""
    # From here on errors are safe to send to `redirect_uri`.
    for name in ("request", "request_uri", "registration"):
        if name in fields:
            raise OAuthError(f"{name}_not_supported", f"{name} is not supported")
    if "response_type" not in fields:
        raise OAuthError("invalid_request", "response_type is missing")
    if fields["response_type"] != "code":
        raise OAuthError("unsupported_response_type", "only response_type=code is supported")
    if fields.get("response_mode", "query") != "query":
        raise OAuthError("invalid_request", "only response_mode=query is supported")
    if "openid" not in fields.get("scope", "").split(" "):
        raise OAuthError("invalid_scope", "scope must contain openid")
    if fields.get("code_challenge_method") != "S256":
        raise OAuthError("invalid_request", "PKCE is required with code_challenge_method=S256")
    if not CHALLENGE.fullmatch(fields.get("code_challenge", "")):
        raise OAuthError("invalid_request", "code_challenge must be a SHA-256 in base64url")
    prompts = fields.get("prompt", "").split(" ")
    if "none" in prompts and len(prompts) > 1:
        raise OAuthError("invalid_request", "prompt=none stands alone")
    return AuthorizationRequest(
        client_id=fields["client_id"],
        redirect_uri=redirect_uri,
        state=fields.get("state"),
        nonce=fields.get("nonce"),
        scope=fields["scope"],
        challenge=fields["code_challenge"],
        login_hint=fields.get("login_hint", "")[:MAX_EMAIL_CHARS],
        is_silent=prompts == ["none"],
    )


def answer_address(redirect_uri: str, *, issuer: str, state: str | None, **answer: str) -> str:
    """`redirect_uri` with the answer, `state` and `iss` (RFC 9207 §2)."""
    fields = {**answer, **({"state": state} if state is not None else {}), "iss": issuer}
    return f"{redirect_uri}?{urlencode(fields)}"


def authenticate_client(registration: Registration, authorization: str | None, fields: dict[str, str]) -> str:
    """The client id. Raises: ClientAuthError; ValueError when Basic and form authentication are combined."""
    if authorization is None:
        client_id, client_secret = fields.get("client_id", ""), fields.get("client_secret", "")
    else:
        if "client_secret" in fields:
            raise ValueError("the client authenticated in two ways at once")
        client_id, client_secret = _read_basic(authorization)
        if fields.get("client_id", client_id) != client_id:
            raise ValueError("client_id differs from the one in the Authorization header")
    if not registration.proves(client_id, client_secret):
        raise ClientAuthError("the client id or secret is wrong", used_basic=authorization is not None)
    return client_id


def _read_basic(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError(scheme)
        client_id, colon, client_secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError as error:
        raise ClientAuthError("the Authorization header is not Basic", used_basic=True) from error
    if not colon:
        raise ClientAuthError("the Authorization header is not Basic", used_basic=True)
    return unquote_plus(client_id), unquote_plus(client_secret)


def check_person(typed_email: str, typed_name: str) -> Person:
    """The person of the form: e-mail lower-cased, name derived from it if empty.

    Raises: ValueError with a sentence for the person when the e-mail address is invalid.
    """
    email = typed_email.strip().lower()
    local, at, domain = email.rpartition("@")
    labels = domain.split(".")
    if not (at and len(email) <= MAX_EMAIL_CHARS and len(local) <= 64 and _LOCAL_PART.fullmatch(local)):
        raise ValueError("Enter an e-mail address such as alice@example.com.")
    if len(labels) < 2 or not all(_DOMAIN_LABEL.fullmatch(label) for label in labels):
        raise ValueError("Enter an e-mail address such as alice@example.com.")
    visible = "".join(" " if unicodedata.category(letter).startswith("C") else letter for letter in typed_name)
    name = " ".join(visible.split())[:MAX_NAME_CHARS].strip()
    return Person(email=email, name=name or " ".join(re.findall(r"[^\W_]+", local)).title() or email)
