"""The landing page and where a signed-in person goes from there."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.http import require_safe

from orgs.selectors import memberships

_FAILURES = {
    "unreachable": "The identity provider cannot be reached right now. Try again in a moment.",
    "deactivated": "Your account here is deactivated. The person who runs this service can let you in again.",
    "again": "Your sign-in has ended. Sign in again to go on.",
    "denied": "You chose not to sign in.",
    "1": "Signing in did not work. Try again; if it stays, tell the person who runs this service.",
}


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """What this is, or straight to work."""
    if not request.user.is_authenticated:
        return render(request, "site/landing.html", {"signin_url": reverse("signin")})
    first = memberships(request.user).first()
    return redirect("orgs:overview", first.organization_id) if first else redirect("orgs:welcome")


@require_safe
def migrate(request: HttpRequest) -> HttpResponse:
    """GET /docs/migrate: from the endpoints of single vendors to the one of all. Public. Spec: D112"""
    context = {
        "page_title": "Move to the unified endpoint",
        "base_url": settings.BASE_URL,
        "sunset": settings.VENDOR_MCP_SUNSET,
    }
    return render(request, "site/migrate.html", context)


@require_safe
def signin(request: HttpRequest) -> HttpResponse:
    """One button. `next` is kept only when it stays on this site."""
    target = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}) or not target.startswith("/"):
        target = "/"
    if request.user.is_authenticated and "failed" not in request.GET:
        return redirect(target)
    start = f"{reverse('oidc_authentication_init')}?{urlencode({'next': target})}"
    context = {
        "start_url": start,
        "provider_name": settings.OIDC_PROVIDER_NAME,
        "error": _FAILURES.get(request.GET.get("failed", "")),
        "reason": "" if target == "/" else "Sign in to open the page you asked for.",
    }
    return render(request, "site/signin.html", context)
