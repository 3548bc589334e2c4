"""The two ends of the code flow. The library keeps state, nonce and verifier; we add discovery and words."""

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
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
    OIDCLogoutView,
    get_next_url,
)

from gateway.lib import error_answers
from orgs.models import User
from orgs.signin import backchannel, freshness, provider
from orgs.signin.provider import ProviderUnavailable

_WITHOUT_OFFLINE = "oidc_without_offline"
# The errors of a provider that would have to show a page despite prompt=none. OpenID Connect Core 3.1.2.6
_NEEDS_A_PAGE = frozenset({"login_required", "interaction_required", "consent_required", "account_selection_required"})


class AuthenticateView(OIDCAuthenticationRequestView):
    """GET /oidc/authenticate/?next=/… goes to the identity provider. Contract: 3"""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The endpoint comes from discovery at the moment of use."""
        self.OIDC_RP_CLIENT_ID = self.get_settings("OIDC_RP_CLIENT_ID")

    def get(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the provider, or say that it cannot be reached."""
        if not request.user.is_authenticated:
            request.session.set_expiry(settings.SIGN_IN_WAIT_S)  # most such rows are never used again
        try:
            self.OIDC_OP_AUTH_ENDPOINT = provider.current().authorization_endpoint
        except ProviderUnavailable:
            return _failed("unreachable", get_next_url(request, "next"))
        response: HttpResponse = super().get(request)
        return response

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        """offline_access where it is wanted and the provider offers it."""
        params: dict[str, str] = dict(super().get_extra_params(request))
        wanted = settings.OIDC_OFFLINE_ACCESS
        offered = provider.current().offers_offline_access and _WITHOUT_OFFLINE not in request.session
        if wanted == "on" or (wanted == "auto" and offered):
            params["scope"] = f"{settings.OIDC_RP_SCOPES} offline_access"
        return params


class CallbackView(OIDCAuthenticationCallbackView):
    """GET /oidc/callback/ ends the flow."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Sign the person in. What no sign-in of this browser led to is refused, and an error among it signs nobody
        out: pages may link here.

        Raises: SuspiciousOperation, a 400: the state is missing, another browser's or was used.
        """
        if request.GET.get("state") not in request.session.get("oidc_states", {}):
            if "error" in request.GET:
                return self._told()
            raise SuspiciousOperation("the callback belongs to no sign-in of this browser")
        # Both end with the session, which the library ends on an error.
        self._was_without_offline = _WITHOUT_OFFLINE in request.session
        self._wanted, error = request.session.get("oidc_login_next"), request.GET.get("error")
        response: HttpResponse = super().get(request)
        if error == "invalid_scope" and settings.OIDC_OFFLINE_ACCESS == "auto" and not self._was_without_offline:
            request.session[_WITHOUT_OFFLINE] = True  # it offers them, and not to us
            query = urlencode({"next": self._wanted}) if self._wanted else ""
            return HttpResponseRedirect(f"{reverse('oidc_authentication_init')}?{query}")
        return response

    def login_success(self) -> HttpResponse:
        """The session lives as long as a person's does."""
        answer: HttpResponse = super().login_success()
        self.request.session.set_expiry(None)
        freshness.note_word(self.request.session)
        return answer

    def login_failure(self) -> HttpResponseRedirect:
        """A session that was not confirmed ends, or would be sent to the provider by the next page again and for ever.

        While the provider is away its last word counts: see gateway.web.sign_in_refresh.
        """
        if self.request.user.is_authenticated:
            if getattr(self.request, "provider_is_silent", False):
                freshness.note_silence(self.request.session)
                return HttpResponseRedirect(self._wanted or "/")
            auth.logout(self.request)
        return self._told()

    def _told(self) -> HttpResponseRedirect:
        """One page for every failure: why is in the log, not in the address."""
        if isinstance(getattr(self, "user", None), User):
            return _failed("deactivated", None)
        error = self.request.GET.get("error")
        why = "denied" if error == "access_denied" else "again" if error in _NEEDS_A_PAGE else "1"
        return _failed(why, getattr(self, "_wanted", None))


class SignOutView(OIDCLogoutView):
    """POST /oidc/logout/ ends the session here, and for a browser the one at the provider. Contract: 3"""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """A page that goes on to the provider by itself: a form may not be redirected to another origin."""
        onward = _provider_sign_out(request) if "text/html" in request.headers.get("Accept", "") else ""
        answer: HttpResponse = super().post(request)
        if not onward:
            return answer
        page = render(request, "site/signed_out.html", {"onward": onward, "provider_name": settings.OIDC_PROVIDER_NAME})
        page["Refresh"] = f"0;url={onward}"
        page["Cache-Control"] = "no-store"
        return page


@method_decorator(csrf_exempt, name="dispatch")
class BackchannelLogoutView(View):
    """POST /oidc/backchannel-logout/ is the provider's: the signed token is what lets it in."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """200 when it was acted on, 400 with the reason, 503 to be sent again. Section 2.8 of the specification."""
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
    """The address at which the provider ends its session (OpenID Connect RP-Initiated Logout 2); empty for none."""
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
    """/admin/login/ leads through the identity provider: there is no password here. Staff go on, others are refused."""

    http_method_names = ("get", "head", "options")

    def get(self, request: HttpRequest) -> HttpResponse:
        """To the provider, to where staff wanted to go, or 403."""
        target = get_next_url(request, "next") or ""
        if not target.startswith("/admin/") or target.startswith("/admin/login"):
            target = "/admin/"
        if not request.user.is_authenticated:
            return HttpResponseRedirect(f"{reverse('oidc_authentication_init')}?{urlencode({'next': target})}")
        if not (isinstance(request.user, User) and request.user.is_staff):
            return error_answers.page(
                request,
                403,
                title="This part is for support staff",
                message=f"You are signed in as {request.user}, who has no support access.",
                what_to_do="Whoever runs this service gives it with manage.py make_staff.",
            )
        return HttpResponseRedirect(target)


def _failed(why: str, target: str | None) -> HttpResponseRedirect:
    """The sign-in page with words for `why`. Its button starts again and still leads to where the person wanted to go,
    which may be an app that waits; nothing starts by itself, so a provider that is away is no loop.
    """
    wanted = {"failed": why, **({"next": target} if target else {})}
    return HttpResponseRedirect(f"{reverse('signin')}?{urlencode(wanted)}")
