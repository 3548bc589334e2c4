"""The landing page, sign-in page and migration guide."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from gateway.lib.translated import translated
from gateway.site.help_pages import in_frame
from orgs.selectors import memberships

_FAILURES = {
    "unreachable": gettext_lazy("We can’t reach the identity provider right now. Try again in a moment."),
    "deactivated": gettext_lazy("Your account is deactivated. Contact your administrator to restore it."),
    "again": gettext_lazy("Your session has ended. Sign in again to continue."),
    "denied": gettext_lazy("Sign-in was canceled."),
    "1": gettext_lazy("We couldn’t sign you in. If this keeps happening, contact your administrator."),
}


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """The landing page; a signed-in person is redirected to their first organization."""
    if not request.user.is_authenticated:
        return render(request, "site/landing.html", {"signin_url": reverse("signin")})
    first = memberships(request.user).first()
    return redirect("proxy_pages:home", first.organization_id) if first else redirect("orgs:welcome")


@require_safe
def setup(request: HttpRequest) -> HttpResponse:
    """GET /setup: the guides for clients in the person's first organization, after sign-in if need be."""
    if not request.user.is_authenticated:
        return redirect(f"{reverse('signin')}?{urlencode({'next': request.path})}")
    first = memberships(request.user).first()
    return redirect("proxy_pages:setup", first.organization_id) if first else redirect("orgs:welcome")


@require_safe
def migrate(request: HttpRequest) -> HttpResponse:
    """GET /docs/migrate: guide from the per-vendor endpoints to the unified one. Public. Spec: D112"""
    context = {
        "page_title": gettext("Move to the unified endpoint"),
        "base_url": settings.BASE_URL,
        "sunset": settings.VENDOR_MCP_SUNSET,
    }
    return in_frame(request, "site/migrate.html", context)


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
        "provider_name": translated(settings.OIDC_PROVIDER_NAME),
        "error": _FAILURES.get(request.GET.get("failed", "")),
        "reason": "" if target == "/" else gettext("Sign in to continue."),
    }
    return render(request, "site/signin.html", context)
