from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from gateway.lib import error_responses
from gateway.lib.management_token_format import presented

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Endpoints for other origins; none of them reads the session.
_OPEN_PREFIXES = ("/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/device_authorization")
# Here this check and the SameSite=Lax cookie replace Django's CSRF token. Contract: 3
_WITHOUT_FORM_TOKEN = ("/api/", "/oidc/logout/")
_ACCEPTED_BY_BOTH = "/invite/"


class CrossSiteMiddleware:
    """403 `cross_site` for unsafe requests of foreign origins, by Fetch-Metadata or Origin. Contract: 3. Spec: D24"""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _SAFE and not _is_open(request) and _foreign(request):
            return error_responses.response(
                request, 403, code="cross_site", message="This request came from another site."
            )
        if _stands_in_for_form_token(request):
            request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
        return self._get_response(request)


def _is_open(request: HttpRequest) -> bool:
    return request.path_info.startswith(_OPEN_PREFIXES) or _is_with_management_token(request)


def _is_with_management_token(request: HttpRequest) -> bool:
    """Such a request to /api is authenticated by its token alone, and never by a session."""
    return request.path_info.startswith("/api/") and presented(request.headers.get("Authorization")) is not None


def _stands_in_for_form_token(request: HttpRequest) -> bool:
    # Invitations are accepted by an HTML form, which has a CSRF token, and by scripts without one.
    if request.path_info.startswith(_ACCEPTED_BY_BOTH):
        return "text/html" not in request.headers.get("Accept", "")
    return request.path_info.startswith(_WITHOUT_FORM_TOKEN)


def _foreign(request: HttpRequest) -> bool:
    if request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
        return True
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    return origin not in {settings.BASE_URL, f"{request.scheme}://{request.get_host()}"}
