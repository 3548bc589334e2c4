"""POST /oauth/register. Spec: §4.2 · RFC 7591 · D116, D117 · protocol.md B.3"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from gateway.lib import strict_json
from gateway.lib.client_address import address_key
from gateway.web import rate
from oauth_ext import registration
from oauth_ext.registration_budget import count_for_all
from oauth_ext.scopes_backend import existing
from oauth_ext.services.registration import TooManyClients, register_client
from oauth_ext.views.request_reading import OAuthErrorResponse, post_endpoint, rate_limited, read_body, require_admitted
from oauth_ext.views.responses import oauth_json


@post_endpoint
@rate_limited("CLIENT_REGISTRATIONS")
def register(request: HttpRequest) -> HttpResponse:
    require_admitted(count_for_all(address_key(rate.address_of(request))))
    try:
        # Content-Type is not checked: the body has to be JSON in any case.
        document = strict_json.loads(read_body(request), max_depth=settings.JSON_DEPTH)
        wanted = registration.read(document, existing)
        client = register_client(wanted)
    except strict_json.StrictJSONError:
        raise OAuthErrorResponse(registration.INVALID_CLIENT_METADATA, "The body is not readable JSON.") from None
    except registration.BadMetadata as fault:
        raise OAuthErrorResponse(fault.error, fault.reason) from None
    except TooManyClients as fault:
        raise OAuthErrorResponse("temporarily_unavailable", fault.message, fault.status) from None
    issued = {"client_id": client.client_id, "client_id_issued_at": int(client.created.timestamp())}
    return oauth_json({**issued, **wanted.metadata()}, 201)
