"""Views of the OpenID Connect code flow. The library keeps state, nonce and verifier."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import auth
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
    OIDCLogoutView,
    get_next_url,
)

from gateway.lib import error_responses
from gateway.lib.translated import translated
from orgs.models import User
from orgs.signin import backchannel, provider, session_confirmation
from orgs.signin.provider import ProviderUnavailable

# Session flag: the provider refused the scope offline_access to us.
_WITHOUT_OFFLINE = "oidc_without_offline"
# The errors of a provider that would have to show a page despite prompt=none. OpenID Connect Core 3.1.2.6
_NEEDS_A_PAGE = frozenset({"login_required", "interaction_required", "consent_required", "account_selection_required"})


class AuthenticateView(OIDCAuthenticationRequestView):
    """GET /oidc/authenticate/?next=/…: redirects to the identity provider. Contract: 3"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The library expects fixed endpoints here; `get` sets them from discovery.
        self.OIDC_RP_CLIENT_ID = self.get_settings("OIDC_RP_CLIENT_ID")

    def get(self, request: HttpRequest) -> HttpResponse:
        if not request.user.is_authenticated:
            # Most of these sessions are never used again.
            request.session.set_expiry(settings.SIGN_IN_WAIT_S)
        try:
            self.OIDC_OP_AUTH_ENDPOINT = provider.current().authorization_endpoint
        except ProviderUnavailable:
            return _failed("unreachable", get_next_url(request, "next"))
        response: HttpResponse = super().get(request)
        return response

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        params: dict[str, str] = dict(super().get_extra_params(request))
        wanted = settings.OIDC_OFFLINE_ACCESS
        offered = provider.current().offers_offline_access and _WITHOUT_OFFLINE not in request.session
        if wanted == "on" or (wanted == "auto" and offered):
            params["scope"] = f"{settings.OIDC_RP_SCOPES} offline_access"
        return params


class CallbackView(OIDCAuthenticationCallbackView):
    """GET /oidc/callback/: ends the flow."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Raises: SuspiciousOperation (400) if the state is missing, used, or another browser's."""
        # Other sites may link here: an error without this browser's state must not end the session.
        if request.GET.get("state") not in request.session.get("oidc_states", {}):
            if "error" in request.GET:
                return self._failure_redirect()
            raise SuspiciousOperation("the callback belongs to no sign-in of this browser")
        # Read before the library ends the session on an error.
        self._was_without_offline = _WITHOUT_OFFLINE in request.session
        self._wanted, error = request.session.get("oidc_login_next"), request.GET.get("error")
        response: HttpResponse = super().get(request)
        if error == "invalid_scope" and settings.OIDC_OFFLINE_ACCESS == "auto" and not self._was_without_offline:
            # The provider advertises the scope and refuses it to this client: sign in again without it.
            request.session[_WITHOUT_OFFLINE] = True
            query = urlencode({"next": self._wanted}) if self._wanted else ""
            return HttpResponseRedirect(f"{reverse('oidc_authentication_init')}?{query}")
        return response

    def login_success(self) -> HttpResponse:
        answer: HttpResponse = super().login_success()
        # The normal lifetime replaces that of a pending sign-in.
        self.request.session.set_expiry(None)
        session_confirmation.note_confirmation(self.request.session)
        return answer

    def login_failure(self) -> HttpResponseRedirect:
        # An unconfirmed session ends; otherwise each page would send it to the provider again.
        # While the provider is away its last confirmation counts (gateway.web.sign_in_refresh).
        if self.request.user.is_authenticated:
            if getattr(self.request, "provider_is_away", False):
                session_confirmation.note_outage(self.request.session)
                return HttpResponseRedirect(self._wanted or "/")
            auth.logout(self.request)
        return self._failure_redirect()

    def _failure_redirect(self) -> HttpResponseRedirect:
        # One page for every failure: the reason is in the log and not in the address.
        if isinstance(getattr(self, "user", None), User):
            return _failed("deactivated", None)
        error = self.request.GET.get("error")
        why = "denied" if error == "access_denied" else "again" if error in _NEEDS_A_PAGE else "1"
        return _failed(why, getattr(self, "_wanted", None))


class SignOutView(OIDCLogoutView):
    """POST /oidc/logout/: ends the session here and, in a browser, at the provider. Contract: 3"""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        # A page that continues by itself: CSP form-action forbids redirecting a form to another origin.
        onward = _provider_sign_out(request) if "text/html" in request.headers.get("Accept", "") else ""
        answer: HttpResponse = super().post(request)
        if not onward:
            return answer
        page = render(
            request,
            "site/signed_out.html",
            {"onward": onward, "provider_name": translated(settings.OIDC_PROVIDER_NAME)},
        )
        page["Refresh"] = f"0;url={onward}"
        page["Cache-Control"] = "no-store"
        return page


@method_decorator(csrf_exempt, name="dispatch")
class BackchannelLogoutView(View):
    """POST /oidc/backchannel-logout/: called by the provider; the signed token authorizes it."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """200: done; 400: refused, with the reason; 503: the provider may retry. Section 2.8 of the specification."""
        try:
            backchannel.end_sessions(request.POST.get("logout_token", ""))
        except backchannel.InvalidLogoutToken as refusal:
            answer: HttpResponse = JsonResponse(
                {"error": "invalid_request", "error_description": str(refusal)}, status=400
            )
        except ProviderUnavailable:
            answer = JsonResponse({"error": "temporarily_unavailable"}, status=503)
        else:
            answer = HttpResponse()
        answer["Cache-Control"] = "no-store"
        return answer


def _provider_sign_out(request: HttpRequest) -> str:
    """The provider's sign-out address (OpenID Connect RP-Initiated Logout 2); empty if there is none."""
    if not settings.OIDC_END_SESSION or not request.user.is_authenticated:
        return ""
    try:
        endpoint = provider.current().end_session_endpoint
    except ProviderUnavailable:
        return ""
    if not endpoint.startswith(("https://", "http://")):
        return ""
    wanted = {"client_id": settings.OIDC_RP_CLIENT_ID, "post_logout_redirect_uri": f"{settings.BASE_URL}/"}
    if hint := request.session.get("oidc_id_token"):
        wanted["id_token_hint"] = hint
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(wanted)}"


class StaffSignInView(View):
    """/admin/login/: signs staff in through the identity provider and refuses others with 403."""

    http_method_names = ("get", "head", "options")

    def get(self, request: HttpRequest) -> HttpResponse:
        target = get_next_url(request, "next") or ""
        if not target.startswith("/admin/") or target.startswith("/admin/login"):
            target = "/admin/"
        if not request.user.is_authenticated:
            return HttpResponseRedirect(f"{reverse('oidc_authentication_init')}?{urlencode({'next': target})}")
        if not (isinstance(request.user, User) and request.user.is_staff):
            return error_responses.page(
                request,
                403,
                title=gettext("This page is for support staff"),
                message=gettext("You’re signed in as %(user)s, who has no support access.") % {"user": request.user},
                what_to_do=gettext("The operator of this service can give it with manage.py make_staff."),
            )
        return HttpResponseRedirect(target)


def _failed(why: str, target: str | None) -> HttpResponseRedirect:
    """Redirect to the sign-in page with the message for `why`; its button leads on to `target`."""
    # Nothing restarts by itself, so a provider that is away causes no loop.
    wanted = {"failed": why, **({"next": target} if target else {})}
    return HttpResponseRedirect(f"{reverse('signin')}?{urlencode(wanted)}")
