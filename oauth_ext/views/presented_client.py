"""Client authentication outside the token endpoint."""

from __future__ import annotations

from django.http import HttpRequest

from oauth_ext import client_authentication, token_form
from oauth_ext.client_authentication import Presented
from oauth_ext.client_proof import is_proven, usable_client
from oauth_ext.models import Client
from oauth_ext.token_form import Fields
from oauth_ext.views.request_reading import OAuthErrorResponse


def named_client(request: HttpRequest, fields: Fields) -> Client | None:
    """Returns None when no client is named. Raises: OAuthErrorResponse with 401, or 400 for two methods at once.
    Spec: D125
    """
    sent = presented(request, fields)
    if sent.method == client_authentication.POST and not (sent.client_id or sent.client_secret):
        return None
    client = usable_client(sent.client_id)
    if client is None or not is_proven(client, sent.client_secret):
        raise refused(sent)
    return client


def presented(request: HttpRequest, fields: Fields) -> Presented:
    client_id, client_secret = (token_form.first(fields, name) for name in ("client_id", "client_secret"))
    try:
        return client_authentication.presented(request.headers.get("Authorization"), client_id, client_secret)
    except client_authentication.BadClientAuthentication as fault:
        raise OAuthErrorResponse("invalid_request", fault.reason) from None


def refused(sent: Presented) -> OAuthErrorResponse:
    refusal = OAuthErrorResponse("invalid_client", "Client authentication failed.", 401)
    if sent.method == client_authentication.BASIC:
        # The challenge where HTTP Basic was tried. RFC 6749 5.2
        refusal.response["WWW-Authenticate"] = 'Basic realm="oauth"'
    return refusal
