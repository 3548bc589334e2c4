"""The landing page, sign-in page and migration guide."""

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
    """The landing page; a signed-in person is redirected to their first organization."""
    if not request.user.is_authenticated:
        return render(request, "site/landing.html", {"signin_url": reverse("signin")})
    first = memberships(request.user).first()
    return redirect("orgs:overview", first.organization_id) if first else redirect("orgs:welcome")


@require_safe
def migrate(request: HttpRequest) -> HttpResponse:
    """GET /docs/migrate: guide from the per-vendor endpoints to the unified one. Public. Spec: D112"""
    context = {
        "page_title": "Move to the unified endpoint",
        "base_url": settings.BASE_URL,
        "sunset": settings.VENDOR_MCP_SUNSET,
    }
    return render(request, "site/migrate.html", context)


@require_safe
def signin(request: HttpRequest) -> HttpResponse:
    """The sign-in page. `next` is kept only for a path on this site."""
    target = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}) or not target.startswith("/"):
        # Open redirect: another host in `next` is dropped.
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
