"""Sessions last only while the identity provider confirms their person. docs/decisions/0013"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import escape_leading_slashes
from django.utils.translation import gettext
from mozilla_django_oidc.middleware import SessionRefresh

from gateway.lib import clock, error_responses
from gateway.lib.machine_paths import is_public_document
from orgs.models import User
from orgs.signin import confirmation, provider, session_confirmation
from orgs.signin.confirmation import ConfirmationStatus

_SENT_THERE = frozenset({"GET", "HEAD"})
_SIGN_IN = "/oidc/"
_RETRY_AFTER_S = "5"


class SignInRefresh(SessionRefresh):
    """mozilla-django-oidc's silent redirect with the discovered endpoints, used where no refresh token exists."""

    def __init__(self, get_response: Any) -> None:
        # SessionRefresh.__init__ reads a fixed endpoint from the settings, so it is skipped.
        super(SessionRefresh, self).__init__(get_response)
        self.OIDC_EXEMPT_URLS: list[str] = []
        self.OIDC_RP_CLIENT_ID = settings.OIDC_RP_CLIENT_ID
        self.OIDC_STATE_SIZE = self.OIDC_NONCE_SIZE = 32
        self.OIDC_AUTHENTICATION_CALLBACK_URL = "oidc_authentication_callback"
        self.OIDC_RP_SCOPES = settings.OIDC_RP_SCOPES
        self.OIDC_USE_NONCE = True

    @property
    def OIDC_OP_AUTHORIZATION_ENDPOINT(self) -> str:  # noqa: N802 - the library's name
        # From discovery at each use; raises ProviderUnavailable.
        return provider.current().authorization_endpoint

    def is_refreshable_url(self, request: HttpRequest) -> bool:
        # The library would exempt all methods but GET from confirmation.
        return True

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """None lets the request go on: anonymous, or the session is confirmed. Otherwise a redirect or a refusal."""
        if settings.SESSION_COOKIE_NAME not in request.COOKIES or _is_exempt(request.path_info):
            return None
        try:
            return self._check(request)
        except (OperationalError, InterfaceError):
            return _unavailable(request)

    def _check(self, request: HttpRequest) -> HttpResponse | None:
        if auth.SESSION_KEY not in request.session:
            return None
        age = clock.now() - session_confirmation.confirmed_at(request.session)
        if age < timedelta(seconds=settings.PROVIDER_WORD_S) or not isinstance(request.user, User):
            return None
        result = confirmation.confirm_person(request.user.pk)
        match result.status:
            case ConfirmationStatus.CONFIRMED:
                session_confirmation.note_confirmation(request.session, result.at)
                return None
            case ConfirmationStatus.REFUSED:
                auth.logout(request)
                return None
            case ConfirmationStatus.UNAVAILABLE:
                return _during_outage(request, result.at)
            case ConfirmationStatus.NOT_POSSIBLE:
                return self._by_browser(request)

    # Without a refresh token the browser is sent to the provider and back with prompt=none, which works only for GET
    # and HEAD of a page.
    def _by_browser(self, request: HttpRequest) -> HttpResponse | None:
        if session_confirmation.is_in_outage(request.session):
            return _during_outage(request, session_confirmation.confirmed_at(request.session))
        if request.path_info.startswith("/api/"):
            return _unconfirmed_json(request)
        if request.headers.get("HX-Request"):
            # HX-Refresh makes the browser load the whole page, which can then be redirected to the provider.
            return HttpResponse(status=401, headers={"HX-Refresh": "true"})
        if request.method not in _SENT_THERE:
            return _unconfirmed_form(request)
        request.session.pop("oidc_id_token_expiration", None)  # forces the library's own check
        try:
            answer: HttpResponse | None = super().process_request(request)
        except provider.ProviderUnavailable:
            return _during_outage(request, session_confirmation.confirmed_at(request.session))
        if answer is not None:
            request.session["oidc_login_next"] = _next_page(request)
        return answer


def _next_page(request: HttpRequest) -> str:
    if request.path_info == reverse("vendor-oauth-callback"):
        # Its query holds a code, which belongs in no session.
        return reverse("own-connections")
    # Open redirect: the library stores the path unescaped, and a browser reads //host as another site.
    return escape_leading_slashes(request.get_full_path())


def _is_exempt(path: str) -> bool:
    return path.startswith(_SIGN_IN) or is_public_document(path)


def _during_outage(request: HttpRequest, confirmed_at: datetime) -> HttpResponse | None:
    # The last confirmation counts for PROVIDER_SILENCE_S, so that a provider outage does not lock people out.
    return None if confirmation.counts_during_outage(confirmed_at) else _unavailable(request)


def _unconfirmed_json(request: HttpRequest) -> HttpResponse:
    message = gettext("Your sign-in has to be confirmed. Open a page of this service, then try again.")
    return error_responses.response(request, 401, code="unauthenticated", message=message)


def _unconfirmed_form(request: HttpRequest) -> HttpResponse:
    """403 for a form. The typed input stays behind the browser's back button."""
    if "text/html" not in request.headers.get("Accept", ""):
        return _unconfirmed_json(request)
    return error_responses.page(
        request,
        403,
        title=gettext("Confirm that you are still signed in"),
        message=gettext("Nothing changed. Your sign-in hasn’t been confirmed for 15 minutes."),
        what_to_do=gettext("Open the start page in another tab, then go back here and send the form again."),
    )


def _unavailable(request: HttpRequest) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        message = gettext("We can’t do this right now. Try again in a moment.")
        answer = error_responses.response(request, 503, code="unavailable", message=message)
    else:
        answer = error_responses.page(
            request,
            503,
            title=gettext("The service is not available right now"),
            message=gettext("The service is not available right now."),
            what_to_do=gettext("Your data is safe. Try again in a moment."),
        )
    answer["Retry-After"] = _RETRY_AFTER_S
    return answer
