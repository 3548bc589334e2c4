"""Addresses that pages had before, as bookmarks and messages still have them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.urls import URLPattern, path, reverse

from gateway.web.page_limit import page_limited

_ORGANIZATION = "orgs/<uuid:org_id>"
# By the former address, the route that serves the page now; both take the same ids.
_MOVED = {
    "connections": "proxy_pages:vendors",
    "connections/<slug:vendor>": "credentials:connection",
    "health": "proxy_pages:vendors",
    "tools": "proxy_pages:vendors",
    "tools/<slug:vendor>": "proxy_pages:tool-access",
    "members": "orgs:members",
    "members/<uuid:user_id>/role": "orgs:member-role",
    "members/<uuid:user_id>/owner": "orgs:member-owner",
    "members/<uuid:user_id>/remove": "orgs:member-remove",
    "service-accounts": "oauth_pages:service-clients",
    "service-accounts/<str:client_id>": "oauth_pages:service-client",
    "service-accounts/<str:client_id>/agent-key": "oauth_pages:agent-key",
    "service-accounts/<str:client_id>/delete": "oauth_pages:service-client-delete",
    "service-accounts/<str:client_id>/credentials": "credentials:service-client-credentials",
    "service-accounts/<str:client_id>/credentials/<slug:vendor>": "credentials:service-client-credential",
    "service-accounts/<str:client_id>/tools/<slug:vendor>": "proxy_pages:client-tools",
    "audit": "audit_pages:request-log",
    "audit/admin": "audit_pages:admin-log",
    "usage": "audit_pages:usage",
    "log-shipping": "audit_pages:log-shipping",
    "log-shipping/<uuid:destination_id>": "audit_pages:log-destination",
}


def _to_new_address(request: HttpRequest, *, route: str, **ids: Any) -> HttpResponsePermanentRedirect:
    query = request.META.get("QUERY_STRING", "")
    target = reverse(route, kwargs=ids)
    answer = HttpResponsePermanentRedirect(f"{target}?{query}" if query else target)
    if request.method not in {"GET", "HEAD"}:
        # The browser sends a form again as it is. RFC 9110 15.4.9
        answer.status_code = 308
    return answer


urlpatterns: list[URLPattern] = [
    path(f"{_ORGANIZATION}/{old}", page_limited(_to_new_address), {"route": route}, name=f"moved-{number}")
    for number, (old, route) in enumerate(_MOVED.items())
]
