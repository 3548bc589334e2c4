"""Parses and checks a request of the authorization endpoint.

A wrong client or redirect address shows the person an error page: a redirect there would make us an open redirector.
Every other error goes to the client; the view decides whether its address is trusted enough for a redirect.
Spec: §4.2 · RFC 6749 4.1.1, 4.1.2.1 · RFC 9207 · RFC 9700 4.11.2 · D118, D163 · protocol.md B.4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from django.conf import settings

from gateway.lib.sentences import sentence
from oauth_ext import features, pkce, redirect_uris, requested_resources, scopes
from oauth_ext.models import Client
from oauth_ext.scopes_backend import all_exist

# Parameters in one query string; more are refused unread.
MAX_FIELDS = 100
MAX_STATE_CHARACTERS = 4_096
_REPEATABLE = frozenset({"resource"})
_READ = _REPEATABLE | frozenset(
    "response_type client_id redirect_uri code_challenge code_challenge_method scope state prompt response_mode".split()
)


class AuthorizePageError(Exception):
    """An error for the person's page; `reason` is a sentence that repeats nothing of the request."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AuthorizeRedirectError(Exception):
    """An error for the client. `location` is its checked redirect address with the error in the query."""

    def __init__(self, client: Client, redirect_uri: str, state: str, error: str, description: str) -> None:
        super().__init__(error)
        # `description` is a sentence that repeats nothing of the request.
        self.client, self.redirect_uri, self.description = client, redirect_uri, description
        self.location = error_location(redirect_uri, state, error, description)


@dataclass(frozen=True, slots=True)
class AuthorizeRequest:
    """An authorization request that passed every check."""

    client: Client
    redirect_uri: str
    state: str
    scopes: tuple[str, ...]
    resources: tuple[str, ...]
    code_challenge: str
    always_ask: bool = False  # prompt=consent
    never_ask: bool = False  # prompt=none


def read_request(query: str, find_client: Callable[[str], Client | None]) -> AuthorizeRequest:
    """Raises: AuthorizePageError, AuthorizeRedirectError. `find_client` returns only clients that may use this
    endpoint.
    """
    fields = _fields(query)
    client = _client(fields, find_client)
    redirect_uri = _redirect_uri(fields, client)
    # From here on the redirect address is checked, so errors may go to the client.
    state = _only(fields, "state")
    if not _is_text(state) or len(state) > MAX_STATE_CHARACTERS:
        raise AuthorizeRedirectError(
            client, redirect_uri, "", "invalid_request", "state is too long or not printable text."
        )
    try:
        return _checked(fields, client, redirect_uri, state)
    except _ParameterError as fault:
        raise AuthorizeRedirectError(client, redirect_uri, state, fault.error, fault.description) from None


def success_location(redirect_uri: str, state: str, code: str) -> str:
    return _location(redirect_uri, {"code": code}, state)


def error_location(redirect_uri: str, state: str, error: str, description: str) -> str:
    return _location(redirect_uri, {"error": error, "error_description": description}, state)


def _location(redirect_uri: str, parameters: dict[str, str], state: str) -> str:
    stated = {"state": state} if state else {}
    return redirect_uris.with_parameters(redirect_uri, {**parameters, **stated, "iss": settings.BASE_URL})


class _ParameterError(Exception):
    def __init__(self, error: str, description: str) -> None:
        super().__init__(error)
        self.error, self.description = error, description


_Fields = dict[str, list[str]]


def _fields(query: str) -> _Fields:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise AuthorizePageError(sentence("We couldn’t read the link from your app.")) from None
    fields: _Fields = {}
    for name, value in pairs:
        # A parameter without a value counts as absent (RFC 6749 3.1).
        if name in _READ and value:
            fields.setdefault(name, []).append(value)
    return fields


def _client(fields: _Fields, find_client: Callable[[str], Client | None]) -> Client:
    named = fields.get("client_id", [])
    if len(named) != 1 or not _is_text(named[0]):
        raise AuthorizePageError(sentence("The link from your app doesn’t say which app it is (client_id is missing)."))
    client = find_client(named[0])
    if client is None:
        raise AuthorizePageError(sentence("We don’t know this app. You may need to connect it again."))
    return client


def _redirect_uri(fields: _Fields, client: Client) -> str:
    sent = fields.get("redirect_uri", [])
    if len(sent) != 1 or not redirect_uris.registered_as(client.redirect_uris.split(), sent[0]):
        raise AuthorizePageError(sentence("The app asks to redirect to an address it didn’t register."))
    try:
        return redirect_uris.check(sent[0])  # the rules may be stricter than at registration
    except redirect_uris.BadRedirectUri:
        raise AuthorizePageError(sentence("The app asks to redirect to an address that isn’t accepted here.")) from None


def _only(fields: _Fields, name: str) -> str:
    values = fields.get(name, [])
    return values[0] if len(values) == 1 else ""


def _checked(fields: _Fields, client: Client, redirect_uri: str, state: str) -> AuthorizeRequest:
    for name, values in fields.items():
        if len(values) > 1 and name not in _REPEATABLE:
            raise _ParameterError("invalid_request", sentence("The parameter %(name)s appears twice.", name=name))
    response_type = _only(fields, "response_type")
    if not response_type:
        raise _ParameterError("invalid_request", "response_type is missing.")
    if response_type not in features.RESPONSE_TYPES_ON:
        raise _ParameterError("unsupported_response_type", sentence("Only the response type code is supported."))
    if _only(fields, "response_mode") not in {"", *features.RESPONSE_MODES_ON}:
        raise _ParameterError("invalid_request", sentence("Only the response mode query is supported."))
    prompts = _only(fields, "prompt").split()
    if len(prompts) > 1 and "none" in prompts:
        raise _ParameterError("invalid_request", sentence("The prompt value none cannot be combined with others."))
    return AuthorizeRequest(
        client=client,
        redirect_uri=redirect_uri,
        state=state,
        scopes=_scopes(_only(fields, "scope")),
        resources=_resources(fields.get("resource", [])),
        code_challenge=_challenge(fields),
        always_ask="consent" in prompts,
        never_ask="none" in prompts,
    )


def _challenge(fields: _Fields) -> str:
    try:
        return pkce.required_challenge(_only(fields, "code_challenge"), _only(fields, "code_challenge_method"))
    except pkce.ChallengeError as fault:
        raise _ParameterError("invalid_request", fault.reason) from None


def _scopes(asked: str) -> tuple[str, ...]:
    try:
        wanted = scopes.parse(asked)
    except ValueError:
        raise _ParameterError("invalid_scope", sentence("A requested scope is unknown.")) from None
    if (asked and not wanted) or not all_exist(wanted):
        raise _ParameterError("invalid_scope", sentence("A requested scope is unknown."))
    return wanted or (scopes.ALL,)


def _resources(asked: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(requested_resources.requested(asked))
    except requested_resources.ForeignResource as fault:
        raise _ParameterError("invalid_target", fault.reason) from None


def _is_text(value: str) -> bool:
    return value.isascii() and value.isprintable()
