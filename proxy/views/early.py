"""Refusals before the view runs, in the form and with the headers of the route. Spec: §4.14 · D99, D102"""

from __future__ import annotations

from django.http import HttpResponse

from gateway.hot_path_request import HotPathRequest
from proxy.timing import Timing
from proxy.views import responses
from proxy.views.origin import cors_headers
from proxy.views.responses import HttpError


def early_refusal(request: HotPathRequest, status: int, error: str, description: str) -> HttpResponse:
    is_cli = request.path.rstrip("/").endswith(("/cli", "/cli/schema"))
    response = responses.http_error_response(HttpError(status, error, description), cli=is_cli)
    for name, value in cors_headers(request.META.get("HTTP_ORIGIN")).items():
        response.headers[name] = value
    request.response_headers = Timing().headers()  # nothing was authenticated or counted: all phases took 0 ms
    return response
