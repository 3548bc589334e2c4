"""POST /oauth/token. Spec: §4.2 · protocol.md B.6 · D122, D125"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from oauthlib.oauth2 import OAuth2Error

from oauth_ext import client_authentication, features, server, token_form
from oauth_ext.token_form import Fields
from oauth_ext.views.answers import oauth_error, oauth_json
from oauth_ext.views.intake import Refused, limited, posted, read_form

# oauthlib's own texts are empty for these, or speak of its insides.
_DESCRIPTIONS = {
    "invalid_client": "Client authentication failed.",
    "unauthorized_client": "This client may not use this grant type.",
    "invalid_scope": "A requested scope is unknown or not allowed.",
    "unsupported_grant_type": "This grant type is not supported.",
}


@posted
@limited("BACKSTOP")
def token(request: HttpRequest) -> HttpResponse:
    """Exchange a grant for tokens. Reads no session and no query string."""
    fields = read_form(request, token_form.TOKEN_FIELDS)
    grant_type = token_form.first(fields, "grant_type")
    if not grant_type:
        raise Refused("invalid_request", "grant_type is missing.")
    if grant_type not in features.GRANTS_ON:
        raise Refused("unsupported_grant_type", _DESCRIPTIONS["unsupported_grant_type"])
    return _exchange(request, fields)


def _exchange(request: HttpRequest, fields: Fields) -> HttpResponse:
    authorization = request.headers.get("Authorization", "")
    try:
        # The library's headers are not passed on: its 401 names the Bearer scheme, which this endpoint does not take.
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
    response = oauth_error(error, _DESCRIPTIONS.get(error) or str(answer.get("error_description", "")), status)
    if status == 401 and client_authentication.used_basic(authorization):
        response["WWW-Authenticate"] = 'Basic realm="oauth"'
    return response
