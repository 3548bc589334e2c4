"""POST /oauth/token. Spec: §4.2 · protocol.md B.6 · D122, D125"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from msgspec.structs import replace
from oauthlib.oauth2 import OAuth2Error

from gateway.coordination import backend
from gateway.coordination.store import Admission, CoordinationUnavailable
from gateway.lib import secrets
from gateway.lib.client_address import address_key
from gateway.web import rate
from oauth_ext import client_authentication, features, server, token_form
from oauth_ext.client_authentication import Presented
from oauth_ext.client_proof import own_credential
from oauth_ext.token_form import Fields
from oauth_ext.views.request_reading import (
    OAuthErrorResponse,
    post_endpoint,
    read_form,
    require_admitted,
    require_capacity,
)
from oauth_ext.views.responses import oauth_json

log = structlog.get_logger(__name__)

# oauthlib's own texts are empty for these, or describe its internals.
DESCRIPTIONS = {
    "invalid_client": "Client authentication failed.",
    "unauthorized_client": "This client may not use this grant type.",
    "invalid_scope": "A requested scope is unknown or not allowed.",
    "unsupported_grant_type": "This grant type is not supported.",
}
_PENDING = "authorization_pending"  # RFC 8628 3.5
_NOT_COUNTED = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


@post_endpoint
def token(request: HttpRequest) -> HttpResponse:
    """Spec: §8 · D19-D22"""
    # Refusals count for the client at its address, then for the address; granted tokens count for the client there. So
    # a client that works is not stopped by others at a shared address, even if they send its id.
    address = address_key(rate.address_of(request))
    store = backend.current()
    admission = store.peek(settings.REFUSED_TOKEN_REQUESTS, address)
    held_against = ""
    try:
        fields = _fields(request, admission)
        sent = _claimed(request, fields)
        client = f"{address} {secrets.sha256(sent.client_id).hex()}"
        held_against = _require_room(admission, client, sent, fields)
        response = _granted(request, fields, client)
    except OAuthErrorResponse as refusal:
        response = refusal.response
        if response.status_code not in _NOT_COUNTED:
            if held_against:
                store.hit(settings.REFUSED_TOKENS_OF_CLIENT, held_against)
            admission = store.hit(settings.REFUSED_TOKEN_REQUESTS, address)
    rate.add_headers(response, admission)
    return response


def _fields(request: HttpRequest, of_address: Admission) -> Fields:
    """Raises: OAuthErrorResponse: 429 for a full window of the address, else the fault of the form."""
    try:
        return read_form(request, token_form.TOKEN_FIELDS)
    except OAuthErrorResponse:
        require_admitted(of_address)
        raise


def _require_room(of_address: Admission, client: str, sent: Presented, fields: Fields) -> str:
    """Returns the key under which a refusal of this request counts. Raises: OAuthErrorResponse with 429."""
    of_client = backend.current().peek(settings.REFUSED_TOKENS_OF_CLIENT, client)
    if of_client.allowed and of_address.allowed:
        return client
    # A client that got tokens here lately passes a full window of the address.
    lately = backend.current().peek(settings.TOKENS_LATELY, client)
    if lately.remaining == lately.rule.limit:
        require_admitted(of_client)
        require_admitted(of_address)
    if of_client.allowed:
        return client
    # Strangers can fill the client's own window by its id, so each credential of its own has a window.
    credential = own_credential(sent, fields)
    if not credential:
        require_admitted(of_client)
    require_capacity(settings.REFUSED_TOKENS_OF_CLIENT, f"{client} {credential}")
    return f"{client} {credential}"


def _granted(request: HttpRequest, fields: Fields, client: str) -> HttpResponse:
    """Returns tokens, or `authorization_pending`, which is no refusal; `slow_down` is one. Raises:
    OAuthErrorResponse.
    """
    grant_type = token_form.first(fields, "grant_type")
    if not grant_type:
        raise OAuthErrorResponse("invalid_request", "grant_type is missing.")
    if grant_type not in features.GRANTS_ON:
        raise OAuthErrorResponse("unsupported_grant_type", DESCRIPTIONS["unsupported_grant_type"])
    require_capacity(settings.TOKENS_OF_CLIENT, client)
    response = _exchange(request, fields)
    if response.status_code == HTTPStatus.OK:
        _count_granted(response, client)
    return response


def _count_granted(response: HttpResponse, client: str) -> None:
    try:
        admission = backend.current().hit(settings.TOKENS_OF_CLIENT, client)
        backend.current().hit(settings.TOKENS_LATELY, client)
    except CoordinationUnavailable as fault:
        # The tokens exist, so the client gets them uncounted.
        log.warning("a granted token request was not counted", fault=str(fault))
        return
    # A response with tokens carries no Retry-After.
    rate.add_headers(response, replace(admission, allowed=True))


def _claimed(request: HttpRequest, fields: Fields) -> Presented:
    client_id, client_secret = (token_form.first(fields, name) for name in ("client_id", "client_secret"))
    try:
        # Unproven. Only the client itself gets tokens, so nothing but refusals count under a false id.
        return client_authentication.presented(request.headers.get("Authorization"), client_id, client_secret)
    except client_authentication.BadClientAuthentication:
        return Presented(client_authentication.POST, client_id, "")


def _exchange(request: HttpRequest, fields: Fields) -> HttpResponse:
    authorization = request.headers.get("Authorization", "")
    try:
        # oauthlib's headers are dropped: its 401 names the Bearer scheme, which this endpoint does not accept.
        _, text, status = server.token_endpoint().create_token_response(
            uri=f"{settings.BASE_URL}{features.ENDPOINTS_ON['token_endpoint']}",
            http_method="POST",
            body=urlencode([(name, value) for name, values in fields.items() for value in values]),
            headers={"Authorization": authorization} if authorization else {},
        )
    except OAuth2Error as fault:
        text, status = fault.json, fault.status_code
    answer: dict[str, Any] = json.loads(text)
    if status == 200:
        return oauth_json(answer)
    error = str(answer["error"])
    refusal = OAuthErrorResponse(error, DESCRIPTIONS.get(error) or str(answer.get("error_description", "")), status)
    if status == 401 and client_authentication.used_basic(authorization):
        refusal.response["WWW-Authenticate"] = 'Basic realm="oauth"'
    if error == _PENDING:
        return refusal.response
    raise refusal
