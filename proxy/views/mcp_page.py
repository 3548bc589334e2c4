"""GET /v1/mcp by a browser: a short page that says what the address is for."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from gateway.hot_path_request import HotPathRequest

# No middleware adds these on the hot path.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "; ".join(
        f"{name} {' '.join(sources)}" for name, sources in settings.CONTENT_SECURITY_POLICY["DIRECTIVES"].items()
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def is_opened_in_browser(request: HotPathRequest) -> bool:
    """A visit without a bearer. MCP clients accept JSON and event streams, and scripts of a page have an origin."""
    meta = request.META
    if request.method != "GET" or "HTTP_AUTHORIZATION" in meta or "HTTP_ORIGIN" in meta:
        return False
    kinds = {part.partition(";")[0].strip().lower() for part in meta.get("HTTP_ACCEPT", "").split(",")}
    return "text/html" in kinds and "text/event-stream" not in kinds


def explain_endpoint() -> HttpResponse:
    return HttpResponse(_page(settings.BASE_URL), headers={**_HEADERS, "Content-Type": "text/html; charset=utf-8"})


@lru_cache(maxsize=1)
def _page(base_url: str) -> bytes:
    # Without a request: the page is the same for everybody.
    signin_url = f"{reverse('signin')}?{urlencode({'next': reverse('setup')})}"
    context = {"page_title": "MCP endpoint", "mcp_url": f"{base_url}/v1/mcp", "signin_url": signin_url}
    return render_to_string("proxy/mcp_endpoint.html", context).encode()
