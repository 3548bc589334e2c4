"""The well-known documents: server metadata, resource metadata, JWKS. Spec: §4.2 · protocol.md B.1 · D27, D28"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from gateway.catalog.registry import vendor_or_none
from gateway.site.errors import error_response
from oauth_ext import features
from oauth_ext.jwt import keys
from oauth_ext.views.responses import open_to_all, preflight

METHODS = "GET, HEAD, OPTIONS"

Document = Callable[..., dict[str, Any] | None]


def _well_known(document: Document) -> Callable[..., HttpResponse]:
    """A view of the document that the function returns; None becomes a 404."""

    @wraps(document)
    def view(request: HttpRequest, **path: str) -> HttpResponse:
        if request.method == "OPTIONS":
            return preflight(METHODS)
        if request.method not in {"GET", "HEAD"}:
            response = error_response(request, 405, message="Use GET.")
            response["Allow"] = METHODS
            return open_to_all(response)
        body = document(**path)
        if body is None:
            # JSON, because clients give up on a page here.
            return open_to_all(error_response(request, 404))
        response = open_to_all(JsonResponse(body))
        response["Cache-Control"] = "public, max-age=300"
        return response

    view.csrf_exempt = True  # type: ignore[attr-defined]
    return view


@_well_known
def authorization_server() -> dict[str, Any]:
    """RFC 8414."""
    return features.server_metadata(settings.BASE_URL, cimd_enabled=settings.CIMD_ENABLED)


@_well_known
def protected_resource() -> dict[str, Any]:
    """RFC 9728 for the unified endpoint, at the root and at its path."""
    return features.resource_metadata(settings.BASE_URL)


@_well_known
def protected_vendor_resource(vendor: str) -> dict[str, Any] | None:
    """RFC 9728 for one vendor's endpoint, if the catalog has the vendor."""
    found = vendor_or_none(vendor)
    return None if found is None else features.resource_metadata(settings.BASE_URL, found.slug, found.name)


@_well_known
def jwks() -> dict[str, Any]:
    """Lists the next, current and previous public key. Spec: D130"""
    return dict(keys.load_key_set().public_jwks)


@_well_known
def unknown(rest: str) -> None:
    """Answers every other well-known path with 404, OpenID Connect's too: no ID tokens are issued."""
