"""POST /oauth/revoke. Spec: §4.2 · RFC 7009 · D124 · protocol.md B.9"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from oauth_ext import token_form
from oauth_ext.services.revocation import revoke_token
from oauth_ext.views.presented_client import named_client
from oauth_ext.views.request_reading import OAuthErrorResponse, post_endpoint, rate_limited, read_form
from oauth_ext.views.responses import open_to_all


@post_endpoint
@rate_limited("BACKSTOP")
def revoke(request: HttpRequest) -> HttpResponse:
    """Answers 200 without a body for known and unknown tokens alike."""
    # token_type_hint is ignored: both types are looked up.
    fields = read_form(request, token_form.REVOCATION_FIELDS)
    token = token_form.first(fields, "token")
    if not token:
        raise OAuthErrorResponse("invalid_request", "token is missing.")
    revoke_token(token=token, client=named_client(request, fields))
    response = open_to_all(HttpResponse(content_type="text/plain"))
    response["Cache-Control"] = "no-store"
    response["Pragma"] = "no-cache"
    return response
