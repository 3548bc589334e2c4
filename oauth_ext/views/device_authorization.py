"""POST /oauth/device_authorization. Spec: §4.2 · RFC 8628 3.1, 3.2 · protocol.md B.8"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode

from gateway.web import rate
from oauth_ext import requested_resources, scopes, token_form
from oauth_ext.client_proof import is_proven, usable_client
from oauth_ext.models import Client
from oauth_ext.scopes_backend import all_exist
from oauth_ext.services.devices import ClientDisconnected, start_device
from oauth_ext.token_form import Fields
from oauth_ext.views.presented_client import presented, refused
from oauth_ext.views.request_reading import OAuthErrorResponse, post_endpoint, rate_limited, read_form
from oauth_ext.views.responses import oauth_json

VERIFICATION_PATH = "/device"


@post_endpoint
@rate_limited("DEVICE_STARTS")
def device_authorization(request: HttpRequest) -> HttpResponse:
    """Starts a device flow for a service client that proves its secret."""
    fields = read_form(request, token_form.DEVICE_FIELDS)
    client = _service_client(request, fields)
    try:
        started = start_device(
            client=client, scopes=_scopes(fields), resources=_resources(fields), address=rate.address_of(request)
        )
    except ClientDisconnected as gone:
        raise OAuthErrorResponse(gone.code, gone.message, gone.status) from None
    page = f"{settings.BASE_URL}{VERIFICATION_PATH}"
    return oauth_json(
        {
            "device_code": started.device_code,
            "user_code": started.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': started.user_code})}",
            "expires_in": started.expires_in_s,
            "interval": started.interval_s,
        }
    )


def _service_client(request: HttpRequest, fields: Fields) -> Client:
    """Raises: OAuthErrorResponse with 401; with 400 for a public client. Spec: §4.2 Device rules"""
    sent = presented(request, fields)
    client = usable_client(sent.client_id)
    if client is None:
        raise refused(sent)
    if not client.is_service_client:
        raise OAuthErrorResponse("unauthorized_client", "Only service clients may use the device flow.")
    if not is_proven(client, sent.client_secret):
        raise refused(sent)
    return client


def _scopes(fields: Fields) -> list[str]:
    asked = token_form.first(fields, "scope")
    try:
        wanted = list(scopes.parse(asked)) if asked else [scopes.ANY]
    except ValueError:
        wanted = []
    if not wanted or not all_exist(wanted):
        raise OAuthErrorResponse("invalid_scope", "A requested scope is unknown or not allowed.")
    return wanted


def _resources(fields: Fields) -> list[str]:
    try:
        return requested_resources.requested(fields.get("resource", ()))
    except requested_resources.ForeignResource as fault:
        raise OAuthErrorResponse("invalid_target", fault.reason) from None
