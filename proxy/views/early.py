"""Refusals before the view runs, in the form and with the headers of the route. Spec: §4.14 · D99, D102"""

from __future__ import annotations

from django.http import HttpResponse

from gateway.hot_path_request import Scope
from proxy.timing import Timing
from proxy.views import responses
from proxy.views.responses import HttpError
from proxy.views.route import cors_headers


def early_refusal(scope: Scope, status: int, error: str, description: str) -> HttpResponse:
    is_cli = scope["path"].rstrip("/").endswith(("/cli", "/cli/schema"))
    response = responses.http_error_response(HttpError(status, error, description), cli=is_cli)
    origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), None)
    for name, value in cors_headers(origin).items():
        response.headers[name] = value
    # Nothing was authenticated or counted: all phases took 0 ms.
    response.more_headers = Timing().headers()  # type: ignore[attr-defined]  # see gateway.hot_path_app
    return response
